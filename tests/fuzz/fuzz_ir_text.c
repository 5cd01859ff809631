/* Fuzz target: the parser, the verifier and hostile text. Accepted text must be a kernel whose
 * records verify, and print to text that reads back to the same kernel. Run by ./dev check as the
 * ctest fuzz_ir_text. */
#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse((const char *)data, size, &kernel) != HAL_OK) {
        return 0;
    }
    char *text = NULL;
    char *again = NULL;
    hal_ir_kernel *copy = NULL;
    if (hal_ir_verify(kernel) != HAL_OK || hal_ir_print(kernel, &text) != HAL_OK ||
        hal_ir_parse(text, strlen(text), &copy) != HAL_OK || hal_ir_print(copy, &again) != HAL_OK ||
        strcmp(text, again) != 0) {
        abort();
    }
    uint64_t hash[2], hash_of_copy[2];
    hal_ir_hash(kernel, hash);
    hal_ir_hash(copy, hash_of_copy);
    if (memcmp(hash, hash_of_copy, sizeof(hash)) != 0) {
        abort();
    }
    free(text);
    free(again);
    hal_ir_kernel_destroy(copy);
    hal_ir_kernel_destroy(kernel);
    return 0;
}
