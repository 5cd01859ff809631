#!/usr/bin/env python3
"""Compiles the op library's kernels for hardware that is not there; ctests vendors_*.

vendors.py VENDOR PROGRAM [--short] [--results FILE]

VENDOR    intel: OpenCL C by ocloc. amd: OpenCL C by clang's amdgcn target and libclc.
          spirv: SPIR-V by spirv-val. radv: pipelines by Mesa's driver for AMD GPUs, which makes
          devices without hardware and compiles for them in earnest. nvidia, nvidia_before_80,
          nvidia_from_90: PTX by ptxas.
PROGRAM   kernel-corpus, which writes the kernels
--short   some kernels of every family, for the first target
--results writes what the compilers say of registers and spills, as JSON
Ends with 0 when every kernel compiles, 1 when one does not, 77 with the reason when a tool or the
plugin's lowering is missing.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
OPTIONS = "-cl-std=CL1.2"


class Missing(Exception):
    """A tool is not there; the text says which, and where Debian has it."""


class Intel:
    """ocloc with Intel's graphics compiler: no doubles, which most of its GPUs emulate or lack. A
    kernel that spills has failed, products of quantised weights beyond 40 words."""
    language, devices, targets = "opencl", ("narrow",), ("tgllp", "dg2")

    def __init__(self):
        self.ocloc = tool("ocloc", "intel-opencl-icd")

    def compile(self, source, target, folder):
        name = f"{source.stem}-{target}"
        log = run([self.ocloc, "compile", "-file", source, "-device", target, "-options", OPTIONS,
                   "-internal_options", "-ze-allow-zebin", "-output", name, "-output_no_suffix",
                   "-out_dir", folder])
        if "Build succeeded" not in log:
            raise RuntimeError(log)
        binary = (folder / name).read_bytes().decode("latin-1")
        figures = {key: int(found.group(1)) for key, text in
                   (("registers", "grf_count"), ("simd", "simd_size"), ("shared", "slm_size"))
                   if (found := re.search(text + r": *(\d+)", binary))}
        spilled = re.search(r"spilled around (\d+)", log)
        words = int(spilled.group(1)) if spilled else 0
        if words > (40 if source.stem.startswith("gemm_quantised") else 0):
            raise RuntimeError(f"{words} words of registers are spilled")
        return figures | {"spills": words}


class Amd:
    """clang's amdgcn target; functions of OpenCL C come from libclc."""
    language, devices, targets = "opencl", ("full",), ("gfx900", "gfx1030")
    library = Path("/usr/lib/clc/amdgcn--amdhsa.bc")

    def __init__(self):
        self.clang = tool("clang-15", "clang-15")
        if not self.library.exists():
            raise Missing(f"{self.library} is missing; Debian has it in libclc-15")

    def compile(self, source, target, folder):
        log = run([self.clang, "-nogpulib", "-target", "amdgcn--amdhsa", f"-mcpu={target}", "-x",
                   "cl", OPTIONS, "-Xclang", "-finclude-default-header", "-O3", "-Xclang",
                   "-mlink-builtin-bitcode", "-Xclang", self.library,
                   "-Rpass-analysis=kernel-resource-usage", "-c", source, "-o",
                   folder / f"{source.stem}-{target}.o"])
        figures = {}
        for key, text in (("registers", "VGPRs"), ("scalar_registers", "SGPRs"),
                          ("spills", "VGPRs Spill"), ("scalar_spills", "SGPRs Spill"),
                          ("scratch", r"ScratchSize \[bytes/lane\]"),
                          ("occupancy", r"Occupancy \[waves/SIMD\]"),
                          ("shared", r"LDS Size \[bytes/block\]")):
            found = re.search(rf"\s{text}: (\d+)", log)
            if not found:
                raise RuntimeError(f"the compiler does not tell {text}:\n{log}")
            figures[key] = int(found.group(1))
        return figures


class Spirv:
    """The validator, with the rules of the environment that the plugin asks for."""
    language, devices, targets = "spirv", ("full", "single", "subgroups"), ("vulkan1.2",)

    def __init__(self):
        self.validator = tool("spirv-val", "spirv-tools")

    def compile(self, source, target, folder):
        del folder
        run([self.validator, "--target-env", target, source])
        return {"bytes": source.stat().st_size}


class Nvidia:
    """ptxas of the CUDA toolkit; a kernel that spills or needs local memory has failed. Below 8.0
    the text is another one."""
    language, devices = "ptx", ("subgroups", "copies")
    targets = ("sm_80",)
    # Attention's gradients hold a tile of each of three matrices, products of groups what a group
    # has beside a product's tile; what they spill stays this little.
    most_spilled = {"gradients_": 32, "gemm_groups_": 8}

    def __init__(self):
        self.ptxas = tool("ptxas", "nvidia-cuda-toolkit, or NVIDIA's own packages")

    def compile(self, source, target, folder):
        log = run([self.ptxas, f"-arch={target}", "-v", source, "-o",
                   folder / f"{source.stem}-{target}.cubin"])
        figures = {"shared": 0}
        for key, text in (("registers", r"Used (\d+) registers"), ("shared", r"(\d+) bytes smem"),
                          ("stack", r"(\d+) bytes stack frame"),
                          ("spills", r"(\d+) bytes spill stores")):
            found = re.search(text, log)
            if found:
                figures[key] = int(found.group(1))
            elif key not in figures:
                raise RuntimeError(f"ptxas does not tell {key}:\n{log}")
        most = max([most for name, most in self.most_spilled.items()
                    if source.stem.startswith(name)], default=0)
        if max(figures["stack"], figures["spills"]) > most:
            raise RuntimeError(f"local memory is used: {figures}")
        return figures


class NvidiaBefore80(Nvidia):
    """The same without asynchronous copies and matrix units."""
    language, devices, targets = "ptx75", ("subgroups",), ("sm_75",)


class NvidiaFrom90(Nvidia):
    """Kernels wait by themselves for the one in front, and load by no read-only path."""
    language, targets = "ptx90", ("sm_90", "sm_100")


class Radv:
    """RADV on null hardware: one process makes all kernels of a target, and reports as it goes."""
    targets = ("navi21", "vega10")
    driver = Path("/usr/share/vulkan/icd.d/radeon_icd.x86_64.json")

    def __init__(self):
        if not self.driver.exists():
            raise Missing(f"{self.driver} is missing; Debian has it in mesa-vulkan-drivers")

    def compile_all(self, program, short):
        """Results and failures of all targets."""
        results = []
        for target in self.targets:
            setting = {"RADV_FORCE_FAMILY": target, "VK_ICD_FILENAMES": str(self.driver),
                       "RADV_DEBUG": "shaderstats,nocache", "MESA_SHADER_CACHE_DISABLE": "true",
                       "HAL_CACHE_DIR": "off"}
            made = subprocess.run([program] + ["--short"] * short + ["--create", "vulkan"],
                                  env=os.environ | setting, capture_output=True, text=True,
                                  errors="replace", check=False)
            if made.returncode == SKIPPED:
                raise Missing(made.stdout.strip())
            print(made.stdout.strip())
            results += self.read(target, made.stderr)
            if made.returncode != 0:
                return results, [f"{target}: {made.stderr[-4000:]}"]
        return results, []

    def read(self, target, log):
        for part in re.split(r"^kernel (?=\w+$)", log, flags=re.MULTILINE)[1:]:
            figures = {}
            for key, text in (("registers", "VGPRs"), ("scalar_registers", "SGPRs"),
                              ("spills", "Spilled VGPRs"), ("scalar_spills", "Spilled SGPRs"),
                              ("scratch", "Scratch size"), ("occupancy", "Subgroups per SIMD"),
                              ("shared", "LDS size"), ("bytes", "Code size")):
                found = re.search(rf"^{text}: (\d+)", part, flags=re.MULTILINE)
                if found:
                    figures[key] = int(found.group(1))
            if figures:
                yield {"kernel": part.split(maxsplit=1)[0], "device": "full",
                       "target": target} | figures


VENDORS = {"intel": Intel, "amd": Amd, "spirv": Spirv, "nvidia": Nvidia,
           "nvidia_before_80": NvidiaBefore80, "nvidia_from_90": NvidiaFrom90, "radv": Radv}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("vendor", choices=sorted(VENDORS))
    parser.add_argument("program")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    try:
        vendor = VENDORS[arguments.vendor]()
        with tempfile.TemporaryDirectory() as folder:
            return compile_all(vendor, arguments, Path(folder))
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED


def compile_all(vendor, arguments, folder):
    if hasattr(vendor, "compile_all"):
        results, failures = vendor.compile_all(arguments.program, arguments.short)
    else:
        results, failures = compile_each(vendor, arguments, folder)
    for failure in failures:
        print(failure)
    results.sort(key=lambda result: (result["target"], result["device"], result["kernel"]))
    summarise(results, failures)
    if arguments.results:
        lines = ",\n".join(json.dumps(result) for result in results)
        arguments.results.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 1 if failures or not results else 0


def compile_each(vendor, arguments, folder):
    results, failures = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(vendor.compile, source, target, source.parent): (source, target)
                for device in vendor.devices
                for source in write_kernels(vendor, arguments, folder / device, device)
                for target in vendor.targets[:1 if arguments.short else None]}
        for job in concurrent.futures.as_completed(jobs):
            source, target = jobs[job]
            try:
                results.append({"kernel": source.stem, "device": source.parent.name,
                                "target": target} | job.result())
            except RuntimeError as error:
                failures.append(f"{source.name} for {target}: {error}")
    return results, failures


def write_kernels(vendor, arguments, folder, device):
    folder.mkdir()
    command = [arguments.program, "--device", device, vendor.language, folder]
    written = subprocess.run(command[:1] + ["--short"] * arguments.short + command[1:],
                             capture_output=True, text=True, check=False)
    if written.returncode == SKIPPED:
        raise Missing(written.stdout.strip())
    if written.returncode != 0:
        sys.exit(written.stdout + written.stderr)
    print(written.stdout.strip())
    return sorted(folder.iterdir())


def summarise(results, failures):
    for target in sorted({result["target"] for result in results}):
        of_target = [result for result in results if result["target"] == target]
        line = f"{target}: {len(of_target)} kernels compile"
        if "registers" in of_target[0]:
            most = max(of_target, key=lambda result: result["registers"])
            spilling = [result for result in of_target if result["spills"] > 0]
            line += f"; at most {most['registers']} registers ({most['kernel']})"
            line += f"; {len(spilling)} spill"
            for result in spilling[:20]:
                line += f"\n    {result['kernel']} spills {result['spills']}"
        print(line)
    print(f"{len(failures)} do not compile")


def tool(name, package):
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} is not installed; Debian has it in {package}")
    return path


def run(command):
    """What a tool prints; a failure carries it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
