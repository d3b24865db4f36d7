"""The node in C is built in every choice of its parts, as C and as C++, and by the tools of the boards."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import SOURCE, STRICT, compiler

MACROS = ("UART", "RS485", "CAN", "CAN_FD", "TCP", "I2C", "TMQ", "ASK")
INPUTS, KINDS = 200_000, 6  # other ones each time; `make fuzz` tries a million
SANITIZER = "malloc_context_size=0:quarantine_size_mb=1:detect_leaks=0"
"""It takes two thirds of the time, and still finds every access; the node allocates nothing."""
CPLUSPLUS = ["-xc++", "-std=c++11", *STRICT[1:]]


@pytest.mark.parametrize("macro", MACROS)
@pytest.mark.parametrize("receive", [0, 1])
def test_each_part_can_be_left_out(macro: str, receive: int) -> None:
    parts = [f"-DBCN_{macro}=0", f"-DBCN_RECEIVE={receive}"]
    subprocess.run([compiler(), *STRICT, *parts, "-c", str(SOURCE), "-o", "/dev/null"], check=True)


def test_it_is_clean_in_cplusplus_whose_compiler_hashes_names(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler: install g++")
    program = tmp_path / "names.cpp"
    names = {"temp": token("temp"), "käse": token("käse"), "": token("")}
    lines = [f'static_assert(BCN_TOKEN("{name}") == {number}u, "");' for name, number in names.items()]
    program.write_text("\n".join(['#include "buscoupler_node.h"', *lines]))
    for source in (SOURCE, program):
        command = ["g++", *CPLUSPLUS, f"-I{SOURCE.parent}", "-c", str(source), "-o", "/dev/null"]
        subprocess.run(command, check=True)


@pytest.mark.timeout(300)
def test_inputs_of_damaged_traffic_pass_the_sanitizers(tmp_path: Path) -> None:
    made, driver = tmp_path / "driver", Path(__file__).with_name("cnode_driver.c")
    flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SOURCE.parent}"]
    built = subprocess.run(
        [compiler(), *flags, str(driver), str(SOURCE), "-o", str(made)], capture_output=True, text=True
    )
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here: install libasan")
    assert built.returncode == 0, built.stderr
    seed = random.randrange(1 << 31)
    print(f"seed {seed}")
    command, quick = [str(made), str(INPUTS // KINDS), str(seed)], {"ASAN_OPTIONS": SANITIZER}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | quick)
    assert done.returncode == 0, done.stderr
    heard = [int(count) for count in done.stdout.split()]
    assert len(heard) == KINDS
    assert min(heard) > INPUTS // KINDS // 20
