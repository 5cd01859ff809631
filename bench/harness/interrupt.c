/* Signals that end a run. */
#include "harness/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t is_asked;

static void interrupt_note(int number)
{
    (void)number;
    is_asked = 1;
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = interrupt_note,
                               .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_was_asked(void)
{
    return is_asked != 0;
}
