/* The process that a device belongs to. */
#ifndef PLUGINS_CPU_THREADS_PROCESS_H
#define PLUGINS_CPU_THREADS_PROCESS_H

#include <stdint.h>

/* A number that changes in forked children, which have none of the parent's threads. Unlike getpid
 * it costs no call of the system. Threads: any. */
uint32_t cpu_process_generation(void);

#endif
