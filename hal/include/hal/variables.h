/* The environment variables of Halyard, each with its values, the source that reads it and one line
 * of help. hal-info --help prints this table; tests/lint/variables.py compares README.md,
 * docs/man/hal-info.1 and the sources with it. A plugin's README describes the plugin's variables.
 *
 *     #define PRINT(name, values, reader, help) printf("%s=%s  %s\n", #name, values, help);
 *     HAL_VARIABLES(PRINT)
 *
 * A process that runs set-uid heeds HAL_BACKEND and HAL_LOG only. */
#ifndef HAL_VARIABLES_H
#define HAL_VARIABLES_H

#define HAL_VARIABLES(X)                                                                           \
    X(HAL_BACKEND, "LIST", "hal/src/plugin/selection.c",                                           \
      "devices in order of preference: plugin, plugin:index, plugin:text-in-name, id:text or "     \
      "auto; unset: hardware, then the cpu, then software that acts as a GPU")                     \
    X(HAL_PLUGIN_PATH, "PATHS", "hal/src/plugin/search.c",                                         \
      "folders or files, with colons, searched for plugins before halyard/plugins next to the "    \
      "library")                                                                                   \
    X(HAL_LOG, "LEVEL", "hal/src/base/log.c", "error, warn, info or debug; unset: no log")         \
    X(HAL_CACHE_DIR, "FOLDER", "hal/src/plugin/cache.c",                                           \
      "folder of the compile cache, or off; unset: halyard in XDG_CACHE_HOME, else in ~/.cache")   \
    X(HAL_PROBE, "TIME", "hal/src/plugin/probe.c",                                                 \
      "off or 0, or milliseconds, at most 600000, for each step of the process that probes a "     \
      "driver for features that it gets wrong; unset: 10000")                                      \
    X(HAL_DUMP, "LIST", "hal/src/layers/layer.c",                                                  \
      "ir: kernels go to the log, before and after legalising; native: what a plugin made of "     \
      "them, with HAL_LOG=info; batch: what queues run goes to files for hal-replay, calls: with " \
      "the values of calls on arrays, unfused: and each call by itself")                           \
    X(HAL_DUMP_DIR, "FOLDER", "hal/src/layers/dump.c",                                             \
      "folder of the files of HAL_DUMP=batch; unset: the working folder")                          \
    X(HAL_TRACE, "FILE", "hal/src/layers/trace.c",                                                 \
      "what is done, and when, is written there for Perfetto")                                     \
    X(HAL_PROFILE, "FILE", "hal/src/layers/trace.c",                                               \
      "the same as a page for a browser, with tables of kernels, fusion and memory")               \
    X(HAL_LAYERS, "LIST", "hal/src/layers/layer.c",                                                \
      "validate: reports what a program or kernel does wrong; fault: calls named by HAL_FAULT "    \
      "fail")                                                                                      \
    X(HAL_SANITIZE, "LIST", "hal/src/layers/layer.c",                                              \
      "checks that kernels get: bounds, init, race, math, nan; what they find is reported; stop: " \
      "the batch after a finding fails")                                                           \
    X(HAL_FAULT, "LIST", "hal/src/layers/fault.c",                                                 \
      "calls that fail with HAL_LAYERS=fault: kind:number, or kind:number+ for all from there "    \
      "on; kinds are allocation, compile, submit, wait and lost")                                  \
    X(HAL_CONVOLUTION, "WAY", "ops/src/tensor/context_create.c",                                   \
      "how convolutions are computed, for measurements: copied (windows become a matrix), "        \
      "direct (windows are summed, where they can be) or implicit (the product's kernel reads "    \
      "the image, where it can); unset: by bytes and operations")                                  \
    X(HAL_SCATTER, "ORDER", "ops/src/tensor/context_create.c",                                     \
      "the order in which scatters combine the updates of an element: ordered, unordered (sums "   \
      "of integers by atomic operations, where that takes less time) or atomic (by atomic "        \
      "operations, where they can be); unset: ordered, or what the program sets")                  \
    X(HAL_QUANTISED, "WAY", "ops/src/tensor/context_create.c",                                     \
      "how products by quantised weights of few rows are computed, for measurements: lanes "       \
      "(without matrix units), copied (the weights become a matrix), units (by matrix units, "     \
      "where "                                                                                     \
      "they can be) or their tiles, as 2x4x16x1: for a warp, warps along columns, warps, turns "   \
      "of "                                                                                        \
      "weights ahead; unset: by bytes and operations")                                             \
    X(HAL_COMM, "RANK/COUNT:NAME", "hal/src/comm/environment.c",                                   \
      "the process's rank in the communicator that hal_comm_create_from_environment creates, "     \
      "the number of ranks and a name for the job; unset: the launcher's variables")               \
    X(HAL_COMM_TRANSPORT, "TRANSPORT", "hal/src/comm/environment.c",                               \
      "shared, mpi or mpi:LIBRARY (openmpi, mpich, abi) for the ranks of a launcher; unset: "      \
      "shared memory if all are on one host, else MPI with the launcher's library")

#endif
