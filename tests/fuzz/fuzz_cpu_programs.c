/* Fuzz target: random kernels on the cpu plugin do what the reference interpreter does, bit by bit:
 * interpreted and compiled, with each instruction set of the machine. The first four bytes are the
 * seed of sizes and contents, the others choose the first operations; a difference ends the
 * process. Run by ./dev check as the ctest
 * fuzz_cpu_programs. */
#include "cpu_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t seed = 0;
    const size_t bytes = size < sizeof(seed) ? size : sizeof(seed);
    memcpy(&seed, data, bytes);
    check_program(seed, data + bytes, size - bytes);
    return 0;
}
