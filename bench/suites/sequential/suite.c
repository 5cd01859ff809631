/* Many small dependent operations, as in eager programs: the overhead of device and library per
 * step, and the size from which a device is faster than the second device. */
#include "suites/sequential/sequential.h"
#include "suites/suites.h"

void suite_sequential(bench_state *bench)
{
    static const struct {
        const char *name;
        void (*run)(bench_state *bench);
    } parts[] = {{"chain", sequential_chain},
                 {"alone", sequential_alone},
                 {"steps", sequential_steps},
                 {"trees", sequential_trees}};
    const char *cases = bench->options.cases;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!cases || bench_lists(cases, parts[i].name)) {
            parts[i].run(bench);
        }
    }
}
