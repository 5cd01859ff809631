/* The start file of glibc 2.34 and newer leaves a program's constructors to __libc_start_main,
 * which before got a function for that. Programs are linked with --wrap=__libc_start_main. */
typedef int main_function(int count, char **arguments, char **environment);
typedef void constructor(int count, char **arguments, char **environment);

extern constructor *const __preinit_array_start[] __attribute__((visibility("hidden")));
extern constructor *const __preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor *const __init_array_start[] __attribute__((visibility("hidden")));
extern constructor *const __init_array_end[] __attribute__((visibility("hidden")));

int __real___libc_start_main(main_function *program, int count, char **arguments,
                             constructor *start, void (*end)(void), void (*loader_end)(void),
                             void *stack_end);

static void program_construct(int count, char **arguments, char **environment)
{
    constructor *const *const arrays[2][2] = {{__preinit_array_start, __preinit_array_end},
                                              {__init_array_start, __init_array_end}};
    for (int i = 0; i < 2; i++) {
        for (constructor *const *each = arrays[i][0]; each < arrays[i][1]; each++) {
            (*each)(count, arguments, environment);
        }
    }
}

int __wrap___libc_start_main(main_function *program, int count, char **arguments,
                             constructor *start, void (*end)(void), void (*loader_end)(void),
                             void *stack_end)
{
    return __real___libc_start_main(program, count, arguments, start ? start : program_construct,
                                    end, loader_end, stack_end);
}
