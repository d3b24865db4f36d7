-- Wireshark dissectors of buscoupler: its pcapng captures (link type USER0), TMQ frames and envelopes, SP BUS
-- over TCP, and multicast datagrams. Put this file into the personal Lua plugins directory (Help, About,
-- Folders), or: tshark -X lua_script:buscoupler.lua -r FILE. Layouts: docs/capture.md, docs/wire/.
-- Tokens are shown by the names in the capture, the reserved ones, and those of -o tmq.names:FILE (one a line).

local FRAME_MIN, ENVELOPE_BYTES, HEADER_BYTES, DATA_MAX = 4, 12, 24, 2048

-- Names of tokens (bus/names.py) ---------------------------------------------------------------------------------

local RESERVED = { "buscoupler", "event", "link", "loop", "lease", "takeover", "late", "health", "alarm", "drop", "log", "warning", "error",
    "critical", "values", "ask", "value", "end", "time", "now", '"buscoupler/loop"', "traffic", "alert" }
local names = {}
local roots = {} -- patterns behind which there are identifiers of CAN frames, as lists of tokens

local function xor16(a, b)
    local result, place = 0, 1
    while a > 0 or b > 0 do
        if a % 2 ~= b % 2 then result = result + place end
        a, b, place = math.floor(a / 2), math.floor(b / 2), 2 * place
    end
    return result
end

-- The token of a name: `h = 65599 * h + code point` modulo 2^32, then `h ^ (h >> 16)`.
local function token_of(name)
    local h = 0
    for character in name:gmatch("[\1-\127\194-\244][\128-\191]*") do
        local point = character:byte()
        if point >= 194 then point = point % (point < 224 and 32 or point < 240 and 16 or 8) end
        for byte in character:sub(2):gmatch(".") do point = 64 * point + byte:byte() % 64 end
        h = (65599 * h + point) % 4294967296
    end
    return h - h % 65536 + xor16(h % 65536, math.floor(h / 65536))
end

-- Remember a pattern behind which there are identifiers: `car/0x` in a list of names says it.
local function learn_root(pattern)
    local root = {}
    for part in pattern:gmatch("[^/]+") do
        root[#root + 1] = tonumber(part) and tonumber(part) % 4294967296 or token_of(part:match('^"(.*)"$') or part)
    end
    roots[table.concat(root, "/")] = root
end

-- Remember one part of a pattern, as it is written: in quotes where it is no plain name.
local function learn(word)
    local name = word:match('^"(.*)"$') or word
    if name:match("/0x$") then return learn_root(name:sub(1, -4)) end
    if name == word and (word == "" or word:match("^%d+$") or word:match("^0[xX]%x+$")) then return end
    local known = names[token_of(name)]
    if known == nil then
        names[token_of(name)] = word
    elseif not ("|" .. known .. "|"):find("|" .. word .. "|", 1, true) then
        names[token_of(name)] = known .. "|" .. word
    end
end

-- Learn the names of lines: a name or a pattern on each, and `#` comments.
local function learn_lines(text)
    for line in text:gmatch("[^\r\n]+") do
        local pattern = (" " .. line):gsub("%s#.*$", ""):match("^%s*(.-)%s*$")
        if pattern:match('^"[^"]*"$') then
            learn(pattern)
        else
            for part in pattern:gmatch("[^/]+") do learn(part) end
        end
    end
end

for _, name in ipairs(RESERVED) do learn(name) end

local function shown(token)
    return names[token] or string.format("0x%08x", token)
end

-- Identifier of a CAN frame as it is written (bus/wire/identifier.py), nil where the number is none.
local function identifier(number)
    local kind, id = math.floor(number / 536870912), number % 536870912
    local extended, remote = kind >= 4, math.floor(kind / 2) % 2 == 1
    if kind % 2 == 1 or not extended and id > 0x7ff then return nil end
    return string.format("0x%03x%s%s", id, extended and "x" or "", remote and "r" or "")
end

-- Identifiers in a list of tokens, by their place: behind each root is one.
local function identifiers(tokens)
    local found = {}
    for _, root in pairs(roots) do
        local same = #tokens > #root
        for place, token in ipairs(root) do same = same and tokens[place] == token end
        if same then found[#root + 1] = identifier(tokens[#root + 1]) end
    end
    return found
end

-- TMQ frame, with or without an envelope ------------------------------------------------------------------------

local tmq = Proto("tmq", "TMQ frame")
local f = {
    type = ProtoField.uint8("tmq.type", "Type", base.HEX),
    pub = ProtoField.bool("tmq.type.pub", "PUB", 8, nil, 0x01),
    sub = ProtoField.bool("tmq.type.sub", "SUB", 8, nil, 0x02),
    cache = ProtoField.bool("tmq.type.cache", "CACHE", 8, nil, 0x04),
    remove = ProtoField.bool("tmq.type.remove", "REMOVE", 8, nil, 0x08),
    broker = ProtoField.bool("tmq.type.broker", "BROKER", 8, nil, 0x40),
    bridge = ProtoField.bool("tmq.type.bridge", "BRIDGE", 8, nil, 0x80),
    tokens = ProtoField.uint8("tmq.tokens", "Tokens"),
    size = ProtoField.uint16("tmq.size", "Data length"),
    token = ProtoField.uint32("tmq.token", "Token", base.HEX),
    name = ProtoField.string("tmq.name", "Name"),
    can_id = ProtoField.string("tmq.can_id", "CAN identifier"),
    pattern = ProtoField.string("tmq.pattern", "Pattern"),
    data = ProtoField.bytes("tmq.data", "Data"),
    text = ProtoField.string("tmq.text", "Data as text"),
    flags = ProtoField.uint8("tmq.envelope.flags", "Flags", base.HEX, nil, 0xf0),
    hops = ProtoField.uint8("tmq.envelope.hops", "Hops left", base.DEC, nil, 0x0f),
    length = ProtoField.uint16("tmq.envelope.length", "Frame length (0: opaque)", base.DEC, nil, 0x0fff),
    origin = ProtoField.uint32("tmq.envelope.origin", "Origin", base.HEX),
    sequence = ProtoField.uint32("tmq.envelope.sequence", "Sequence"),
    opaque = ProtoField.bytes("tmq.opaque", "Opaque message"),
}
tmq.fields = {}
for _, field in pairs(f) do table.insert(tmq.fields, field) end
tmq.prefs.names = Pref.string("File of names", "", "Tokens are shown by these names: one a line")

function tmq.prefs_changed()
    if tmq.prefs.names == "" then return end
    local file, problem = io.open(tmq.prefs.names)
    if file == nil then return report_failure("buscoupler: " .. problem) end
    learn_lines(file:read("*a"))
    file:close()
end

-- Bytes of the frame at the start of `tvb`, 0 where it is none or not whole.
local function frame_bytes(tvb)
    if tvb:len() < FRAME_MIN then return 0 end
    local size = tvb(2, 2):uint()
    local total = FRAME_MIN + 4 * tvb(1, 1):uint() + size
    if size > DATA_MAX or total > tvb:len() then return 0 end
    return total
end

local function is_enveloped(tvb)
    return tvb:len() >= ENVELOPE_BYTES and tvb(0, 1):uint() == 0xe1 and tvb(2, 1):uint() >= 0xf0
end

-- An envelope around a message that is no frame: it has the length 0, and no flags.
local function is_opaque(tvb)
    return is_enveloped(tvb) and tvb(1, 1):uint() <= 0x0f and tvb(2, 2):uint() == 0xf000
end

-- Bytes of the frame (envelope and all) at the start of `tvb`, 0 where it is none.
local function message_bytes(tvb)
    if not is_enveloped(tvb) then return frame_bytes(tvb) end
    if tvb:len() == ENVELOPE_BYTES then return 0 end
    local inner = frame_bytes(tvb(ENVELOPE_BYTES):tvb())
    return inner > 0 and inner == tvb(2, 2):uint() % 0x1000 and ENVELOPE_BYTES + inner or 0
end

local function dissect_envelope(tvb, tree)
    local branch = tree:add(tmq, tvb(0, ENVELOPE_BYTES), "Envelope")
    branch:add(f.flags, tvb(1, 1))
    branch:add(f.hops, tvb(1, 1))
    branch:add(f.length, tvb(2, 2))
    branch:add(f.origin, tvb(4, 4))
    branch:add(f.sequence, tvb(8, 4))
    return string.format("%08x/%u ", tvb(4, 4):uint(), tvb(8, 4):uint())
end

local function dissect_frame(tvb, tree)
    local count, size = tvb(1, 1):uint(), tvb(2, 2):uint()
    local kind = tree:add(f.type, tvb(0, 1))
    for _, flag in ipairs({ f.pub, f.sub, f.cache, f.remove, f.broker, f.bridge }) do kind:add(flag, tvb(0, 1)) end
    tree:add(f.tokens, tvb(1, 1))
    tree:add(f.size, tvb(2, 2))
    local words, tokens = {}, {}
    for number = 0, count - 1 do tokens[number + 1] = tvb(FRAME_MIN + 4 * number, 4):uint() end
    local ids = identifiers(tokens)
    for number = 0, count - 1 do
        local place = tvb(FRAME_MIN + 4 * number, 4)
        local item, name = tree:add(f.token, place), names[place:uint()]
        local id = ids[number + 1]
        if id then
            item:append_text(" (" .. id .. ")")
            item:add(f.can_id, place, id):set_generated()
        elseif name then
            item:append_text(" (" .. name .. ")")
            item:add(f.name, place, name):set_generated()
        end
        words[#words + 1] = id or shown(place:uint())
    end
    local pattern = count > 0 and table.concat(words, "/") or "/"
    tree:add(f.pattern, tvb(FRAME_MIN, 4 * count), pattern):set_generated()
    if size > 0 then
        local data = tvb(FRAME_MIN + 4 * count, size)
        tree:add(f.data, data)
        if data:raw():match("^[%g%s]+$") then tree:add(f.text, data) end
    end
    return string.format("%s %u bytes", pattern, size)
end

local function dissect_opaque(tvb, tree)
    local size = tvb:len() - ENVELOPE_BYTES
    local branch = tree:add(tmq, tvb(), "Message that is no TMQ frame")
    local words = dissect_envelope(tvb, branch)
    if size > 0 then branch:add(f.opaque, tvb(ENVELOPE_BYTES)) end
    return words .. string.format("no frame, %u bytes", size)
end

-- One message that fills `tvb`; its summary.
local function dissect_message(tvb, tree)
    if is_opaque(tvb) then return dissect_opaque(tvb, tree) end
    local total = message_bytes(tvb)
    if total == 0 or total ~= tvb:len() then
        tree:add(tmq, tvb(), "Message that is no TMQ frame")
        return string.format("no frame, %u bytes", tvb:len())
    end
    local branch, start, words = tree:add(tmq, tvb()), 0, ""
    if is_enveloped(tvb) then
        words, start = dissect_envelope(tvb, branch), ENVELOPE_BYTES
    end
    words = words .. dissect_frame(tvb(start):tvb(), branch)
    branch:append_text(": " .. words)
    return words
end

function tmq.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "TMQ"
    pinfo.cols.info = dissect_message(tvb, tree)
    return tvb:len()
end

-- Captures of ours: link type USER0 -----------------------------------------------------------------------------

local captured = Proto("buscoupler", "Buscoupler capture")
local c = {
    version = ProtoField.uint8("buscoupler.version", "Version"),
    kind = ProtoField.uint8("buscoupler.kind", "Kind", base.DEC, { [0] = "frame", [1] = "ledger", [2] = "gap", [4] = "names", [5] = "topology", [6] = "event", [7] = "item on a wire" }),
    dir = ProtoField.uint8("buscoupler.dir", "Direction", base.DEC, { [0] = "received", [1] = "sent" }),
    verdict = ProtoField.uint8("buscoupler.verdict", "Verdict"),
    boot = ProtoField.uint64("buscoupler.boot", "Boot (ns)"),
    cap_seq = ProtoField.uint64("buscoupler.cap_seq", "Capture sequence"),
    count = ProtoField.uint32("buscoupler.count", "Messages"),
    peer = ProtoField.string("buscoupler.peer", "Peer"),
    reason = ProtoField.string("buscoupler.reason", "Reason"),
    names = ProtoField.string("buscoupler.names", "Names"),
    items = ProtoField.string("buscoupler.wire.items", "Items"),
    can_id = ProtoField.string("buscoupler.wire.can_id", "CAN identifier"),
    data = ProtoField.bytes("buscoupler.wire.data", "Data"),
    text = ProtoField.string("buscoupler.wire.text", "Data as text"),
}
captured.fields = {}
for _, field in pairs(c) do table.insert(captured.fields, field) end
-- version, kind, dir, verdict, boot u64, cap_seq u64, count u32; then a length and the peer's name
local HEAD = { { c.version, 1 }, { c.kind, 1 }, { c.dir, 1 }, { c.verdict, 1 }, { c.boot, 8 }, { c.cap_seq, 8 },
    { c.count, 4 } }

-- An item on a wire, behind what it is and a colon; its summary.
local function dissect_item(tvb, branch)
    local items = tvb:raw():match("^(%l+):")
    if items == nil then return "item of no kind" end
    branch:add(c.items, tvb(0, #items))
    local item = tvb:len() > #items + 1 and tvb(#items + 1):tvb() or nil
    if item == nil then return items .. ": 0 bytes" end
    local id, size = nil, item:len()
    if items == "frames" and size >= 8 then -- can_frame or canfd_frame, little-endian here
        id, size = identifier(item(0, 4):le_uint()), math.min(item(4, 1):uint(), size - 8)
        if id then branch:add(c.can_id, item(0, 4), id) end
        item = size > 0 and item(8, size):tvb() or nil
    end
    if item then
        branch:add(c.data, item())
        if item:raw():match("^[%g%s]+$") then branch:add(c.text, item()) end
    end
    return string.format("%s: %s%u bytes", items, id and id .. " " or "", size)
end

function captured.dissector(tvb, pinfo, tree)
    if tvb:len() <= HEADER_BYTES or tvb(0, 1):uint() ~= 1 then return 0 end
    local size = tvb(HEADER_BYTES, 1):uint()
    local start = HEADER_BYTES + 1 + size
    local branch, position = tree:add(captured, tvb(0, start)), 0
    for _, part in ipairs(HEAD) do
        branch:add(part[1], tvb(position, part[2]))
        position = position + part[2]
    end
    local peer = size > 0 and tvb(HEADER_BYTES + 1, size):string() or ""
    if size > 0 then branch:add(c.peer, tvb(HEADER_BYTES + 1, size)) end
    pinfo.cols.protocol = "TMQ"
    if tvb(2, 1):uint() == 0 then pinfo.cols.src = peer else pinfo.cols.dst = peer end
    if tvb(1, 1):uint() == 0 then
        local message = tvb:len() > start and tvb(start):tvb() or ByteArray.new(""):tvb("empty")
        pinfo.cols.info = message:len() > 0 and dissect_message(message, tree) or "no frame, 0 bytes"
    elseif tvb(1, 1):uint() == 4 then
        branch:add(c.names, tvb(start))
        learn_lines(tvb(start):raw())
        pinfo.cols.info = "names of tokens"
    elseif tvb(1, 1):uint() == 7 then
        pinfo.cols.info = dissect_item(tvb(start):tvb(), branch)
    else
        branch:add(c.reason, tvb(start))
        pinfo.cols.info = string.format("%s: %u messages", tvb(start):string(), tvb(20, 4):uint())
    end
    return tvb:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, captured)

-- SP BUS over TCP -----------------------------------------------------------------------------------------------

local sp = Proto("spbus", "SP BUS (nanomsg, NNG)")
local sp_length = ProtoField.uint64("spbus.length", "Message length")
sp.fields = { sp_length }
local HANDSHAKE = ByteArray.new("0053500000700000")

local function sp_bytes(tvb, _, offset)
    if tvb(offset, 8):bytes() == HANDSHAKE then return 8 end
    return 8 + tvb(offset, 8):uint64():tonumber()
end

local function sp_message(tvb, pinfo, tree)
    pinfo.cols.protocol = "SP BUS"
    if tvb(0, 8):bytes() == HANDSHAKE then
        tree:add(sp, tvb(), "SP BUS handshake")
        pinfo.cols.info = "handshake"
        return 8
    end
    local branch = tree:add(sp, tvb(0, 8))
    branch:add(sp_length, tvb(0, 8))
    if tvb:len() > 8 then pinfo.cols.info = dissect_message(tvb(8):tvb(), tree) end
    return tvb:len()
end

function sp.dissector(tvb, pinfo, tree)
    dissect_tcp_pdus(tvb, tree, 8, sp_bytes, sp_message)
    return tvb:len()
end

sp:register_heuristic("tcp", function(tvb, pinfo, tree)
    if tvb:len() < 8 or tvb(0, 8):bytes() ~= HANDSHAKE then return false end
    pinfo.conversation = sp
    sp.dissector(tvb, pinfo, tree)
    return true
end)
DissectorTable.get("tcp.port"):add_for_decode_as(sp)

-- Multicast datagrams: messages back to back and a CRC-32, or a fragment of one ----------------------------------

local datagram = Proto("tmqmc", "TMQ multicast")
local m = {
    crc = ProtoField.uint32("tmqmc.crc", "CRC-32", base.HEX),
    offset = ProtoField.uint16("tmqmc.offset", "Fragment offset"),
    chunk = ProtoField.bytes("tmqmc.chunk", "Fragment"),
}
datagram.fields = { m.crc, m.offset, m.chunk }

local function is_fragment(tvb)
    return tvb:len() > ENVELOPE_BYTES + 6 and tvb(0, 1):uint() == 0xe1 and tvb(1, 1):uint() >= 0x80
        and tvb(2, 1):uint() >= 0xf0
end

-- Starts and sizes of the messages, or nil where the datagram does not divide into messages and a CRC.
local function divide(tvb)
    local found, position, stop = {}, 0, tvb:len() - 4
    while position < stop do
        local size = message_bytes(tvb(position, stop - position):tvb())
        if size == 0 then return nil end
        found[#found + 1] = { position, size }
        position = position + size
    end
    return position == stop and #found > 0 and found or nil
end

function datagram.dissector(tvb, pinfo, tree)
    local words, messages = {}, nil
    if not is_fragment(tvb) then
        messages = divide(tvb)
        if messages == nil then return 0 end
    end
    pinfo.cols.protocol = "TMQ"
    local branch = tree:add(datagram, tvb())
    if messages == nil then
        words[1] = "fragment of " .. dissect_envelope(tvb, branch)
        branch:add(m.offset, tvb(ENVELOPE_BYTES, 2))
        branch:add(m.chunk, tvb(ENVELOPE_BYTES + 2, tvb:len() - ENVELOPE_BYTES - 6))
    else
        for _, found in ipairs(messages) do
            words[#words + 1] = dissect_message(tvb(found[1], found[2]):tvb(), branch)
        end
    end
    branch:add_le(m.crc, tvb(tvb:len() - 4, 4))
    pinfo.cols.info = table.concat(words, ", ")
    return tvb:len()
end

datagram:register_heuristic("udp", function(tvb, pinfo, tree)
    if tvb:len() < FRAME_MIN + 4 then return false end
    return datagram.dissector(tvb, pinfo, tree) > 0
end)
DissectorTable.get("udp.port"):add_for_decode_as(datagram)
