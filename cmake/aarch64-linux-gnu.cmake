# Cross-compiles for aarch64 with Debian's compiler; tests run under qemu-user. The library that
# the tests link (cmocka) is unpacked by ./dev check into HALYARD_SYSROOT, a folder that the environment
# may name.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(HALYARD_SYSROOT ${root}/build/aarch64-sysroot)
if(DEFINED ENV{HALYARD_SYSROOT})
    set(HALYARD_SYSROOT $ENV{HALYARD_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH ${HALYARD_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-isystem ${HALYARD_SYSROOT}/usr/include")

set(library_path ${HALYARD_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${library_path}")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${library_path})
