/* What the peers on a device share. */
#include "peers/device_blas.h"

#include <stdio.h>

bool device_peer_fail(device_peer *peer, const char *call, int code)
{
    if (!peer->failed) {
        peer->failed = true;
        snprintf(peer->message, sizeof peer->message, "%s: %s gives %d", peer->name, call, code);
    }
    return false;
}
