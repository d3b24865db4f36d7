"""Targets that read files of the field."""

import gzip
from typing import Final

import pyarrow as pa

from capture.files import CaptureError
from capture.formats.format import Format
from capture.formats.table import BY_KEY, FORMATS
from capture.frames import Frames
from tests.capture.formats.field import FIELD, listed, read_back, some, written
from tests.fuzz.target import Pieces, Target
from tests.fuzz.targets.files import lay

_WHY: Final = "1 to 4 ms an input: a file is written, and read by numpy"


def _target(form: Format) -> Target:
    def feed(pieces: Pieces) -> object:
        path = lay(f"file.{form.key}", pieces)
        found, told, style = read_back(path, form)
        return listed(found), told, style

    def seeds() -> list[bytes]:
        return [written(form, some(12, form)), written(form, some(3, form, seed=2))]

    words = f"files of the format {form.key}"
    return Target(f"file-{form.key}", words, feed, seeds, (CaptureError,), whole=True, inputs=500, why=_WHY)


def _packed(pieces: Pieces) -> object:
    path = lay("file.log", pieces)
    form = next(one for one in FORMATS if one.key == "candump")
    found, told, _ = read_back(path, form)
    assert found is None or isinstance(found, Frames)
    return listed(found), told


def _packed_seeds() -> list[bytes]:
    data = written(FORMATS[0], some(200, FORMATS[0]))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return [gzip.compress(data), gzip.compress(data) * 2, sink.getvalue().to_pybytes()]


_SHOWN: Final = (
    b" (1436509052.249713)  can0  RX - -  123   [8]  00 11 22 33 44 55 66 77\n",
    b" (000.000000)  can0       123   [3]  33`22`11\n (000.100000)  can0  123   [1]  remote request\n",
    b"  can0  20000004   [8]  00 04 00 00 00 00 00 00   ERRORFRAME\n\tcontroller-problem{}\n",
    b"<0x123> [2] 11 22 \n  \x1b[1mcan0\x1b[0m  123  [12]  " + b"11 " * 12 + b"\n",
)


_TABLES: Final = (
    b"timestamp,arbitration_id,extended,remote,error,dlc,data\n1.5,0x123,0,0,0,2,AQI=\n1e-5,0x7ff,0,1,0,4,\n",
    b"TimestampEpoch;BusChannel;ID;IDE;DLC;DataLength;Dir;EDL;BRS;DataBytes\n1.5;1;1FFF;1;2;2;1;0;0;1234\n",
    b'"Time","ID","note","DLC","Data"\n"0:00:01.5","291","a, b","2","AB CD "\n1.5,2047,,3,[1 23 255]\n',
    b"Time [ms]\tid\td0\td1\n1970-01-01 00:00:01.5+01:00\t0x123\t0xAB\t5\n1,5\t18FEF100x\t\t\n",
)
_OF_BUSMASTER: Final = (
    b"***BUSMASTER Ver 2.0.0***\n***START DATE AND TIME 20:11:2013 14:19:9:538***\n***HEX***\n"
    b"***SYSTEM MODE***\n14:19:11:4184 Tx 1 0x099 s 2 00 11 \n00:00:01:0 Rx 2 0x1FF x 1 AB \n",
    b"***BUSMASTER 2.5.0***\n***PROTOCOL J1939***\n***<Time><Channel><CAN ID><Tx/Rx><DLC><DataBytes>***\n"
    b"***DEC***\n***RELATIVE MODE***\n00:00:01:5 1 18eeff00 Tx 1 010 \n",
)


def _text(name: str, words: str, key: str, seeds: tuple[bytes, ...]) -> Target:
    """Return the target of texts of a format that other tools write."""

    def feed(pieces: Pieces) -> object:
        path = lay("file.txt", pieces)
        found, told, style = read_back(path, BY_KEY[key])
        return listed(found), told, style

    return Target(name, words, feed, lambda: [*seeds], (CaptureError,), whole=True, inputs=500, why=_WHY)


TARGETS: Final = (
    *(_target(form) for form in FIELD),
    _text("file-table", "tables of CAN frames of other tools", "csv", _TABLES),
    _text("file-busmaster", "logs of BUSMASTER", "busmaster", _OF_BUSMASTER),
    Target(
        "file-shown",
        "what candump shows on a console",
        _packed,
        lambda: [*_SHOWN],
        (CaptureError,),
        whole=True,
        inputs=500,
        why=_WHY,
    ),
    Target(
        "file-packed",
        "packed files",
        _packed,
        _packed_seeds,
        (CaptureError,),
        whole=True,
        inputs=500,
        why=_WHY,
    ),
)
