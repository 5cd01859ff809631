/* entries.h: a walk through each entry of the main table and of the extensions, without hal in
 * between, with a look after each call. */
#ifndef CONFORMANCE_HAL_ENTRIES_H
#define CONFORMANCE_HAL_ENTRIES_H

#include "hal/direct.h"

/* Looks after a call of `entry`, which succeeded or, where that is allowed, failed. */
typedef void (*entries_look)(case_run *run, void *user, const char *entry);

/* Makes an instance of a host without one and calls each entry in a legal way, some that a device
 * may refuse; the last one destroys the instance. Reports what may not fail. */
void entries_walk(case_run *run, direct *d, entries_look look, void *user);

#endif
