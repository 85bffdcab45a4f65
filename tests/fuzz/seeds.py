"""Small sound files per reader: of our own making, and those that lie beside the checkout."""

import gzip
import json
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from profiling.formats.limits import Limits, Watch
from profiling.formats.registry import READERS
from profiling.formats.source import Source
from profiling.notes import Refusal
from tests.paths import SHARED
from tests.profiling.formats.packing import capture
from tests.profiling.formats.wire import Plane, message, space, varint

_LARGEST = 100_000
"""Larger ones tell no more and cost more."""


def seeds() -> Mapping[str, Sequence[bytes]]:
    """Name of a reader to files that it recognises, unpacked; those that it refuses only where it refuses all."""
    found: dict[str, list[bytes]] = defaultdict(list)
    refused: dict[str, list[bytes]] = defaultdict(list)
    for content in (*_own(), *_shared()):
        name, answered = _reading(content)
        if name is not None:
            (found if answered else refused)[name].append(content)
    return refused | found


def _reading(content: bytes) -> tuple[str | None, bool]:
    """The format that such a file is read as, and whether it gives an answer."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        source = Source(Path(file.name), "seed", Watch(limits=Limits()))
        try:
            head = source.head()
            reader = next((reader for reader in READERS if reader.recognises(head)), None)
        except Refusal:
            return None, False
        try:
            if reader is not None:
                reader.read(source)
        except Refusal:
            return str(reader.format), False
    return None if reader is None else str(reader.format), True


def _shared() -> list[bytes]:
    if SHARED is None:
        return []
    folders = (SHARED / "formats" / "faults" / "dev", SHARED / "traces" / "files")
    paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    contents = (path.read_bytes() for path in paths if path.stat().st_size <= _LARGEST)
    return [plain for plain in map(_unpacked, contents) if 0 < len(plain) <= _LARGEST]


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        return content


def _own() -> list[bytes]:
    return [
        capture(),
        _json([{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}] * 3),
        _json({"traceEvents": _XLA}),
        _json({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "now", "nodes": _NODES}),
        _json({"version": 1, "config": {"argv": "./all_reduce_perf"}, "results": _RESULTS}),
        "\n".join(json.dumps(record) for record in _INSPECTOR).encode(),
        _json(_PLUGIN),
        *(text.encode() for text in TEXTS),
        _xspace(),
        *_profiler_pages(),
        _chakra(),
        _nsys(),
        _rocpd(),
    ]


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


_XLA = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "pid": 1, "tid": 7, "name": "thread_name", "args": {"name": "Stream #7(Compute)"}},
    {"ph": "M", "pid": 1, "tid": 9, "name": "thread_name", "args": {"name": "Steps"}},
    {"ph": "X", "pid": 1, "tid": 7, "name": "gemm", "ts": 1.5, "dur": 10.25, "args": {"hlo_op": "dot.1"}},
    {"ph": "X", "pid": 1, "tid": 7, "name": "ncclDevKernel_AllReduce", "ts": "20", "dur": "4.5"},
    {"ph": "X", "pid": 1, "tid": 9, "name": "0", "ts": 0, "dur": 40},
]
_NODES = [
    {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "inputs": {}, "attrs": []},
    {
        "id": 2,
        "name": "aten::mm",
        "ctrl_deps": 1,
        "inputs": {
            "values": [[1, 1, 0, 64, 2, "cuda:0"]],
            "shapes": [[8, 8], [8, 8]],
            "types": ["Tensor(c10::Half)"] * 2,
        },
        "outputs": {"values": [[2, 2, 0, 64, 2, "cuda:0"]], "shapes": [[8, 8]], "types": ["Tensor(c10::Half)"]},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": 1}],
    },
]
_SIDE = {"time": 12.5, "alg_bw": 80.0, "bus_bw": 140.0, "nwrong": 0}
_RESULTS = [
    {"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": -1, "out_of_place": _SIDE, "in_place": _SIDE}
]
_INSPECTOR = [
    {
        "header": {"id": "0x1", "rank": 0, "n_ranks": 8, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "hostname": "n", "pid": 1},
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": number,
            "coll_msg_size_bytes": 1 << 20,
            "coll_exec_time_us": 61.5,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 17.0,
            "coll_busbw_gbs": 29.8,
        },
    }
    for number in (1, 2)
]
_PLUGIN = [
    {"name": "Group", "cat": "GROUP", "ph": "b", "id": 0, "pid": 1, "tid": 1, "ts": 1.0, "args": {"groupId": 0}},
    {
        "name": "AllReduce",
        "cat": "COLL",
        "ph": "b",
        "id": 1,
        "pid": 1,
        "tid": 1,
        "ts": 2.0,
        "args": {"SeqNum": 1, "CommHash": 7, "Rank": 0, "Count": 1024, "Datatype": "ncclFloat32", "nChannels": 2},
    },
    {"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 1, "pid": 1, "tid": 1, "ts": 9.0},
]
TEXTS = (
    "\n".join(
        (
            "n1:100:100 [0] NCCL INFO NCCL version 2.21.5+cuda12.4",
            "n1:100:120 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1a000 commId 0x9 - Init COMPLETE",
            "n1:100:120 [0] NCCL INFO Channel 00/02 :    0   1",
            "n1:100:120 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
            "n1:101:121 [1] NCCL INFO Channel 01/0 : 1[1] -> 0[0] [send] via NET/IB/0/GDRDMA",
            "n1:101:121 [1] NCCL WARN Call to connect failed",
            "n1:100:120 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0",
        )
    ),
    "# nThread 1 nGpus 2 minBytes 8\n# Using devices\n#  Rank  0 Group  0 Pid 1 on n1 device 0 [0x1a] NVIDIA H100\n"
    "#                                     out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "     1048576        262144     float     sum      -1    45.10   23.25   40.69      0    44.02   23.82   41.69    "
    "N/A\n"
    "# Avg bus bandwidth    : 41.19\n",
    "[2025-11-03 10:00:00,000] [INFO] [logging.py:107:log_dist] [Rank 0] Comm. Op            Message Size        "
    "Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)\n"
    "all_reduce\n                    256.0 MB            45                  922.50              20.50               "
    "1100.5              1503.2\n",
    "#Entity   SMACT        TENSO        DRAMA        NVLTX\nID\nGPU 0     0.700        0.300        0.400        2e9\n"
    "GPU 1     0.650        N/A          0.600        1e9\nGPU-I 0   0.100        0.100        0.100        N/A\n",
    '# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\nDCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a",modelName="H100"} 0.75\n'
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="H100"} 98\n',
    "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk\n# Idx      W      C      C      %      %"
    "      %      %    MHz    MHz\n    0    300     60     70     97     45      0      0   2619   1980\n",
    "timestamp, name, index, utilization.gpu [%], utilization.memory [%], power.draw [W], memory.used [MiB]\n"
    "2025/11/03 10:00:00.000, NVIDIA H100, 0, 97 %, 45 %, 300.10 W, 70000 MiB\n"
    "2025/11/03 10:00:01.000, NVIDIA H100, 0, [N/A], 44 %, 301.00 W, 70000 MiB\n",
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\tPXB\t0-31\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\t32-63\t1\t\tN/A\nNIC0\tPXB\tSYS\t X \n\nLegend:\n\n  X    = Self\n",
    "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    "GPU 1: NVIDIA H100 (UUID: GPU-2)\n"
    "\t Link 0: 26.562 GB/s\n",
    "+---------------------------------------------------------------------------------------+\n"
    "| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |\n"
    "|-----------------------------------------+----------------------+----------------------+\n"
    "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
    "| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |\n"
    "|=========================================+======================+======================|\n"
    "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:1A:00.0 Off |                    0 |\n"
    "| N/A   40C    P0             300W / 700W |  70000MiB / 81559MiB |     97%      Default |\n"
    "+-----------------------------------------+----------------------+----------------------+\n",
    "==============NVSMI LOG==============\n\nTimestamp                                 : Mon Nov  3 10:00:00 2025\n"
    "Attached GPUs                             : 1\nGPU 00000000:1A:00.0\n    Product Name                          : "
    "NVIDIA H100\n    Utilization\n        Gpu                               : 97 %\n        Memory                  "
    "          : 45 %\n    Power Readings\n        Power Draw                        : 300.10 W\n",
    '{"card0": {"GPU use (%)": "97", "GPU Memory Allocated (VRAM%)": "40", "Average Graphics Package Power (W)": '
    '"300.0"}}',
    '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    '"KERNEL_DISPATCH",1,1,2,"void gemm(int, float)",3,2000,3000\n"KERNEL_DISPATCH",1,1,2,"copy",4,1000,1500\n',
    '{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}, "agents": [], "strings": {"callback_records": []}, '
    '"kernel_symbols": [{"kernel_id": 1, "formatted_kernel_name": "gemm"}], "buffer_records": {"kernel_dispatch": '
    '[{"start_timestamp": 1000, "end_timestamp": 2000, "correlation_id": {"internal": 1}, "dispatch_info": '
    '{"kernel_id": 1, "agent_id": {"handle": 1}, "queue_id": {"handle": 1}}}], "memory_copy": []}}]}',
    '==PROF== Connected\n"ID","Process ID","Kernel Name","Context","Stream","Section Name","Metric Name","Metric Unit",'
    '"Metric Value"\n"0","1","gemm(float*, int)","1","7","GPU Speed Of Light","Duration","usecond","1,234.50"\n'
    '"0","1","gemm(float*, int)","1","7","GPU Speed Of Light","SM Throughput","%","87.20"\n',
    '"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum"\n"","","usecond","Mbyte"\n'
    '"0","copy","1,000","1.368"\n',
    "Processing [r.sqlite] with [cuda_gpu_kern_sum.py]... \n\nTime (%),Total Time (ns),Instances,Avg (ns),Med (ns),"
    'Min (ns),Max (ns),StdDev (ns),Name\n62.5,500000,5,100000.0,100000.0,90000,110000,100.0,"void gemm<int, 4>(x)"\n',
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n1000,500,1,1,1,1,32,1,1,32,0.0,0.0,,,,,NVIDIA H100 (0),"
    "1,7,gemm\n",
    "INFO [loggers.py:271] Engine 000: Avg prompt throughput: 98.5 tokens/s, Avg generation throughput: 40.2 tokens/s, "
    "Running: 2 reqs, Waiting: 0 reqs\nINFO SpecDecoding metrics: Mean acceptance length: 3.00, Accepted throughput: "
    "45.1 tokens/s, Drafted throughput: 67.5 tokens/s, Accepted: 200 tokens, Drafted: 300 tokens\n",
)


def _xspace() -> bytes:
    """Two devices and the host, which launched, waited and marked steps (tsl/profiler/protobuf/xplane.proto)."""
    device, other, host = Plane("/device:GPU:0", device_vendor="Nvidia"), Plane("/device:GPU:1"), Plane("/host:CPU")
    gemm = device.event("gemm_fusion", 20, 5, correlation_id=8, hlo_op="dot.1", hlo_module="jit_step(1)")
    reduce = device.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 26, 9, correlation_id=9, group_id=1)
    copy = device.event("MemcpyD2H", 36, 2, memcpy_details="kind_src:device kind_dst:pinned size:4096 dest:0 async:1")
    device.line("Stream #7(Compute)", [gemm, reduce], timestamp_ns=1_771_595_650_217_823_548)
    device.line("Stream #8(MemcpyD2H)", [copy], timestamp_ns=1_771_595_650_217_823_548)
    device.line("Steps", [device.event("0", 0, 40), device.event("1", 40, 40)])
    device.line("XLA Modules", [device.event("jit_step(1)", 0, 80)])
    other.line("Stream #7(Compute)", [other.event("gemm_fusion", 22, 5, correlation_id=10)])
    calls = [host.event("cuLaunchKernel", 3, 1, correlation_id=number) for number in (8, 9)]
    host.line(
        "Host Threads/1", [*calls, host.event("cuStreamSynchronize", 5, 40), host.event("train", 0, 41, step_num=0)]
    )
    return space(device, other, host)


def _profiler_pages() -> tuple[bytes, bytes]:
    """An overview and a table of operations (tensorflow/core/profiler/protobuf/{overview_page,tf_stats}.proto)."""
    kind = "type.googleapis.com/tensorflow.profiler.PerGenericStepDetails"
    steps = [message((1, kind), (2, message((1, at), (2, 10.0), (6, 7.5), (11, 2.5)))) for at in range(3)]
    pipeline = message((2, message((1, 10.0), (3, 10.0), (4, 10.0))), *((4, step) for step in steps), (9, "GPU"))
    top = message((4, message((1, "conv1"), (2, "Conv2D"), (3, 0.5))), (9, 25.0), (10, 75.0))
    records = [
        message((1, rank), (2, side), (3, name), (5, 9), (8, time))
        for rank, (side, name, time) in enumerate((("Device", "IDLE", 30.0), ("Device", "MatMul", 60.0)), 1)
    ]
    overview = message((2, pipeline), (3, top), (6, message((1, 1), (4, "GPU"), (5, 8))))
    return overview, message((4, message(*((1, record) for record in records))))


def _chakra() -> bytes:
    """Records behind their lengths: the description of the file, then nodes (mlcommons/chakra et_def.proto)."""
    header = message((2, _attribute("schema", "1.0.1")), (2, _attribute("pid", 7)))
    product = message((1, 1), (2, "aten::addmm(0)"), (3, 4), (7, 318), (8, message((1, "[]"), (2, "[[2, 3], [3, 4]]"))))
    reduce = message(
        *((1, 2), (2, "ncclDevKernel_AllReduce"), (3, 7), (7, 90)),
        *((10, _attribute(key, value)) for key, value in (("comm_type", 0), ("comm_size", 4096), ("pg_size", 16))),
    )
    send = message((1, 3), (2, "COMM_SEND"), (3, 5), (10, _attribute("comm_size", 64)))
    return b"".join(varint(len(record)) + record for record in (header, product, reduce, send, reduce))


def _attribute(name: str, value: int | str) -> bytes:
    return message((1, name), (29 if isinstance(value, str) else 9, value))


def _database(script: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    data = connection.serialize()
    connection.close()
    return data


def _nsys() -> bytes:
    return _database(
        """
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'), (3, 'step');
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.24.14');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
            globalPid INT, demangledName INT, shortName INT, gridX INT, blockX INT, graphId INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 2000, 0, 7, 1, 16777216, 1, 1, 1, 32, NULL),
            (1500, 4000, 0, 20, 2, 16777216, 2, 2, 1, 32, NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
            globalPid INT, bytes INT, copyKind INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4100, 4200, 0, 7, 3, 16777216, 4096, 1);
        CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
        INSERT INTO NVTX_EVENTS VALUES (900, 4300, 59, 'step', NULL, 16777217);
        """
    )


def _rocpd() -> bytes:
    return _database(
        """
        CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
        INSERT INTO rocpd_string VALUES (1, 'gemm'), (2, 'KernelExecution');
        CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INT, queueId INT, sequenceId INT, completionSignal TEXT,
            start INT, end INT, description_id INT, opType_id INT);
        INSERT INTO rocpd_op VALUES (1, 0, 1, 1, '', 1000, 2000, 1, 2), (2, 0, 1, 2, '', 2500, 2600, 1, 2);
        CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INT, tid INT, start INT, end INT, apiName_id INT,
            args_id INT);
        """
    )
