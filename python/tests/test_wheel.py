"""What the files of a wheel need of glibc, and programs that are linked for an older one."""
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import halyard as hx

TOOLS = pathlib.Path(__file__).parents[1] / "tools"
if not TOOLS.is_dir() or not shutil.which("readelf"):
    pytest.skip("needs python/tools and readelf", allow_module_level=True)
sys.path.insert(0, str(TOOLS))
import wheel_tag  # noqa: E402

NEWEST = (2, 28)


def test_no_file_of_the_wheel_needs_a_newer_glibc():
    try:
        tags = importlib.metadata.distribution("halyard").read_text("WHEEL") or ""
    except importlib.metadata.PackageNotFoundError:
        tags = ""
    found = re.search(r"-manylinux_(\d+)_(\d+)_", tags)
    if not found:
        pytest.skip("the package is not of a wheel for an older glibc")
    promised = int(found[1]), int(found[2])
    folder = pathlib.Path(hx.__file__).parent
    needs = {str(path.relative_to(folder)): wheel_tag.asked(path)[1]
             for path in wheel_tag.elf_files(folder)}
    assert {"_core.abi3.so", "lib/hal-conformance", "lib/libhalyard.so.0"} <= needs.keys()
    assert max(needs.values()) <= promised <= NEWEST, needs


PROGRAM = """
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern char **environ;
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1; }
static void *run(void *value) { sem_post(value); return value; }

int main(int count, char **arguments)
{
    struct stat status;
    sem_t posted;
    pthread_t thread;
    sem_init(&posted, 0, 0);
    if (pthread_create(&thread, NULL, run, &posted) || sem_wait(&posted) || pthread_join(thread, NULL)) {
        return 1;
    }
    if (stat(arguments[0], &status) || status.st_size == 0 || !dlopen(NULL, RTLD_NOW)) {
        return 2;
    }
    if (!environ || !environ[0] || strcmp(environ[0], "NAME=value") || strcmp(getenv("NAME"), "value")) {
        return 3; /* the program's copy of the variable is not the one that glibc sets */
    }
    fprintf(stdout, "%d %.0f\\n", constructed, pow(2, count));
    return 0;
}
"""
NEWER = "int pthread_cond_clockwait(void); int main(void) { return pthread_cond_clockwait(); }"


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A function that links a program for NEWEST: its path, or what the linker says."""
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("glibc")
    subprocess.run([sys.executable, "-B", TOOLS / "wheel_glibc.py", ".".join(map(str, NEWEST)), compiler,
                    folder], check=True)

    def link(name, text, options=(f"-L{folder}", "-Wl,--wrap=__libc_start_main")):
        source, program = folder / f"{name}.c", folder / name
        source.write_text(text)
        made = subprocess.run([compiler, *options, source, "-o", program, "-lm", "-lpthread", "-ldl"],
                              capture_output=True, text=True)
        return program if made.returncode == 0 else made.stderr
    return link


def test_programs_that_are_linked_for_an_older_glibc_run(linked):
    program = linked("program", PROGRAM)
    libraries, version, _ = wheel_tag.asked(program)
    assert version <= NEWEST and {"libpthread.so.0", "libdl.so.2"} <= set(libraries)
    ran = subprocess.run([program, "2", "3"], capture_output=True, text=True, env={"NAME": "value"})
    assert (ran.returncode, ran.stdout) == (0, "1 8\n"), ran
    usual = wheel_tag.asked(linked("usual", PROGRAM, ()))[1]
    machine = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    assert machine < (2, 34) or usual > NEWEST  # else this test shows nothing


def test_functions_that_the_older_glibc_lacks_do_not_link(linked):
    assert "undefined reference to `pthread_cond_clockwait'" in linked("newer", NEWER)
    assert isinstance(linked("usual_newer", NEWER, ()), pathlib.Path)
