#!/usr/bin/env python3
"""The tables of one run of rocprofv3 are one trace, found by their names, in whatever folder."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["PASTAPROF"]
CALLS = """"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API_EXT","hipLaunchKernel",{pid},{pid},1,1000,1100
"""
KERNELS = """"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 1",1,1,{pid},1,10,"add",1,1500,2500,64,1,1,1024,1,1
"""
AGENTS = """"Node_Id","Logical_Node_Id","Agent_Type","Wave_Front_Size","Cu_Count","Name","Product_Name"
0,0,"CPU",0,0,"cpu","A CPU"
1,1,"GPU",64,304,"gfx942","AMD Instinct MI300X"
"""
JSON = '''{"rocprofiler-sdk-tool": [{"metadata": {"pid": 42},
 "agents": [{"id": {"handle": 7}, "type": 2, "name": "gfx942", "logical_node_type_id": 0}],
 "kernel_symbols": [{"kernel_id": 9, "formatted_kernel_name": "add"}],
 "buffer_records": {"kernel_dispatch": [{"thread_id": 42, "correlation_id": {"internal": 3},
  "start_timestamp": 2000, "end_timestamp": 2500, "dispatch_info": {"agent_id": {"handle": 7},
  "queue_id": {"handle": 16}, "kernel_id": 9, "dispatch_id": 1}}]}}]}'''
STATS = '"Name","Calls","TotalDurationNs"\n"add",1,1000\n'


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text, pid=0):
        (self.folder / name).write_text(text.format(pid=pid), encoding="utf-8")

    def report(self, *operands):
        done = subprocess.run([PROGRAM, "report", *map(str, operands), "--tool", "kernels", "--format", "json"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["trace"]

    def test_tables_of_a_run_are_one_trace(self):
        self.write("42_kernel_trace.csv", KERNELS, 42)
        self.write("42_hip_api_trace.csv", CALLS, 42)
        self.write("42_agent_info.csv", AGENTS)
        self.write("42_kernel_stats.csv", STATS)
        for operands in ([self.folder], sorted(self.folder.iterdir())):
            trace = self.report(*operands)
            self.assertEqual(len(trace["sources"]), 1)
            self.assertEqual(trace["events"], {"api": 1, "kernel": 1})
            self.assertEqual(trace["quality"]["kernels_linked"], 1)
            self.assertEqual([d["name"] for d in trace["devices"]], ["AMD Instinct MI300X"])

    def test_a_json_says_itself_what_its_agents_are(self):
        self.write("42_agent_info.csv", AGENTS)
        self.write("42_kernel_stats.csv", STATS)
        (self.folder / "42_results.json").write_text(JSON, encoding="utf-8")
        trace = self.report(self.folder)
        self.assertEqual([Path(s["path"]).name for s in trace["sources"]], ["42_results.json"])
        self.assertEqual(trace["events"], {"kernel": 1})

    def test_one_table_alone_is_a_trace(self):
        self.write("42_kernel_trace.csv", KERNELS, 42)
        trace = self.report(self.folder / "42_kernel_trace.csv")
        self.assertEqual(trace["events"], {"kernel": 1})
        self.assertEqual(trace["quality"]["kernels_linked"], 0)

    def test_two_runs_of_a_folder_are_two_traces(self):
        for pid in (42, 43):
            self.write(f"{pid}_kernel_trace.csv", KERNELS, pid)
            self.write(f"{pid}_hip_api_trace.csv", CALLS, pid)
        trace = self.report(self.folder, "--label", "first,second")
        self.assertEqual([source["label"] for source in trace["sources"]], ["first", "second"])
        self.assertEqual(trace["quality"]["kernels_linked"], 1)


if __name__ == "__main__":
    unittest.main()
