// Runs a script under the WebAssembly build of MicroPython:
// node micropython.mjs micropython.mjs-OF-THE-BUILD buscoupler_node.py SCRIPT
import fs from "fs";

const [build, node, script] = process.argv.slice(2);
const { loadMicroPython } = await import(build);
const board = await loadMicroPython({
  heapsize: 64 * 1024,
  linebuffer: true,
  stdout: (line) => process.stdout.write(line + "\n"),
});
board.FS.writeFile("/buscoupler_node.py", fs.readFileSync(node));
board.runPython(fs.readFileSync(script, "utf8"));
