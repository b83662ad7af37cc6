#!/usr/bin/env python3
"""The wheel: in a new environment of Python, without a compiler, it gives the command and the package."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["PASTAPROF"])
ROOT = pathlib.Path(os.environ["PASTA_SOURCE_DIR"])


def is_sanitized():
    said = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=False).stdout
    symbols = subprocess.run(["nm", "-D", PROGRAM], capture_output=True, text=True, check=False).stdout
    return "libasan" in said or "__asan_init" in symbols or "__gcov" in symbols


@unittest.skipIf(is_sanitized(), "this build is not one to be installed")
class Wheel(unittest.TestCase):
    def test_install_and_use(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            made = subprocess.run([sys.executable, ROOT / "scripts/wheel", PROGRAM.parents[2], folder],
                                  capture_output=True, text=True, check=True).stdout.strip()
            self.assertRegex(made, r"/pastaprof-[^-]+-py3-none-linux_x86_64\.whl$")
            venv = subprocess.run([sys.executable, "-m", "venv", folder / "venv"], capture_output=True, text=True,
                                  check=False)
            if venv.returncode:
                self.skipTest(f"no environments here: {(venv.stdout + venv.stderr)[:200]}")
            environment = {"PATH": f"{folder}/venv/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
            python = folder / "venv/bin/python"
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", made],
                           check=True, capture_output=True, env=environment)
            (folder / "program.py").write_text("import pastaprof as pasta\n"
                                               "with pasta.annotate('in the wheel'):\n    print(pasta.watched())\n")
            # By its path: what an environment of Python prepares for its scripts is not ours to test.
            command = folder / "venv/bin/pastaprof"
            run = subprocess.run([command, "run", "-o", "t.pasta", "--", python, "program.py"], cwd=folder,
                                 capture_output=True, text=True, env=environment, check=True)
            self.assertEqual(run.stdout, "True\n")
            dump = subprocess.run([command, "dump", "t.pasta"], cwd=folder, capture_output=True, text=True,
                                  env=environment, check=True).stdout
            self.assertIn('"in the wheel"', dump)
            version = subprocess.run([command, "--version"], capture_output=True, text=True, env=environment,
                                     check=True).stdout
            self.assertEqual(version, subprocess.run([PROGRAM, "--version"], capture_output=True, text=True,
                                                     check=True).stdout)
            alone = subprocess.run([python, "program.py"], cwd=folder, capture_output=True, text=True, env=environment,
                                   check=True)
            self.assertEqual(alone.stdout, "False\n")


if __name__ == "__main__":
    unittest.main()
