/* Transports of ranks by messages of MPI, see transport.h. All state is guarded by the lock of
 * mpi_process.h. */
#include "transport.h"

#include "mpi_process.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define STEP_BYTES 4032u /* of a step message: MPI libraries send as much without a handshake */
#define JOIN_TAG 0u
#define PAUSE_NS 50000
#define END_NS UINT64_C(200000000) /* for messages in flight when the process ends */
#define ENDED (-1)                 /* error of transports when the process ends */
#define NO_MEMORY (-2)             /* error of transports that could not send */

enum { CHANNEL_STEPS, CHANNEL_DATA, CHANNEL_CONTROL, CHANNELS };

typedef struct transfer {
    hal_mpi_request request;
    bool is_active;
} transfer;

typedef struct step_message {
    uint64_t number;
    uint64_t bytes; /* of data for the receiver, which follow here or as a data message */
    hal_mailbox_call call;
    uint8_t data[];
} step_message;

#define INLINE_BYTES (STEP_BYTES - sizeof(step_message))

/* Of `bytes` of data, those that follow in the step message; the rest is a data message. Two small
 * messages need no handshake. */
static uint64_t inline_part(uint64_t bytes)
{
    return bytes <= INLINE_BYTES ? bytes : bytes <= INLINE_BYTES + STEP_BYTES ? INLINE_BYTES : 0;
}

enum { CONTROL_JOIN, CONTROL_FAILURE, CONTROL_SPLIT, CONTROL_LEAVE, CONTROL_BACKEND };

typedef struct control_message {
    uint32_t what, from; /* CONTROL_JOIN ...; rank of the sender */
    uint64_t number;     /* of the join or split; of the last step that a leaving rank published;
                          * of the state of a backend */
    uint32_t tag;        /* of a join: the number of the next communicator of the sender */
    uint32_t failed_rank, is_lost; /* the failed rank does not come any more */
    int32_t status, color, key;
    char text[HAL_MAILBOX_MESSAGE_BYTES];
} control_message;

/* A control message to one rank. */
typedef struct post {
    struct post *next;
    transfer sent;
    control_message message;
} post;

typedef struct peer {
    uint32_t world; /* rank of MPI */
    transfer steps_in, steps_out, data_in, data_out;
    step_message *in, *out; /* STEP_BYTES each */
    bool has_message;       /* `in` holds a message that is not used up */
    uint64_t received;      /* step messages that are used up */
    uint64_t taken;         /* last step whose data has come */
    bool has_left;
    uint64_t last;    /* step that it published, if it has left */
    uint32_t tags[2]; /* that it proposed for splits */
} peer;

struct hal_transport {
    hal_transport *next;        /* among all transports of the process */
    hal_mailbox_header *header; /* null: the rank has left */
    uint32_t rank, count;
    uint32_t number; /* of the communicator, which gives its tags */
    uint64_t published;
    int error; /* of MPI, the first one */
    transfer control_in;
    control_message control;
    post *posts;
    uint8_t *messages; /* memory of the step messages */
    peer peers[];
};

static hal_transport *transports;
static bool has_lost_rank; /* a rank was given up: MPI cannot be ended in order */

static uint32_t channel_tag(const hal_transport *transport, uint32_t channel)
{
    return 1 + CHANNELS * (transport->number - 1) + channel;
}

static void transport_note_error(hal_transport *transport, int error)
{
    transport->error = transport->error == 0 ? error : transport->error;
}

/* ---- Transfers ---- */

static bool transfer_is_done(hal_transport *transport, const hal_mpi *mpi, transfer *one)
{
    int done = !one->is_active;
    if (!done && transport->error == 0) {
        transport_note_error(transport, mpi->call->test(&one->request, &done));
        one->is_active = !done;
    }
    return done;
}

static void transfer_send(hal_transport *transport, const hal_mpi *mpi, transfer *one,
                          uint32_t world, uint32_t tag, const void *data, uint64_t bytes)
{
    const int error = mpi->call->send(data, (uint32_t)bytes, world, tag, &one->request);
    transport_note_error(transport, error);
    one->is_active = error == 0;
}

static void transfer_receive(hal_transport *transport, const hal_mpi *mpi, transfer *one,
                             uint32_t world, uint32_t tag, void *data, uint64_t bytes)
{
    const int error = mpi->call->receive(data, (uint32_t)bytes, world, tag, &one->request);
    transport_note_error(transport, error);
    one->is_active = error == 0;
}

static void transfer_forget(transfer *one, const hal_mpi *mpi)
{
    if (one->is_active) {
        mpi->call->forget(&one->request);
    }
    one->is_active = false;
}

/* Of a receive that nothing matches any more. */
static void transfer_cancel(transfer *one, const hal_mpi *mpi)
{
    if (one->is_active) {
        mpi->call->cancel(&one->request);
    }
    transfer_forget(one, mpi);
}

static void step_receive_next(hal_transport *transport, const hal_mpi *mpi, peer *from)
{
    from->has_message = false;
    from->received++;
    transfer_receive(transport, mpi, &from->steps_in, from->world,
                     channel_tag(transport, CHANNEL_STEPS), from->in, STEP_BYTES);
}

static void control_receive_next(hal_transport *transport, const hal_mpi *mpi)
{
    transfer_receive(transport, mpi, &transport->control_in, HAL_MPI_ANY,
                     channel_tag(transport, CHANNEL_CONTROL), &transport->control,
                     sizeof transport->control);
}

static void control_send(hal_transport *transport, const hal_mpi *mpi,
                         const control_message *message)
{
    for (uint32_t q = 0; q < transport->count && transport->error == 0; q++) {
        if (q == transport->rank) {
            continue;
        }
        post *made = malloc(sizeof *made);
        if (!made) {
            transport_note_error(transport, NO_MEMORY);
        } else {
            *made = (post){.next = transport->posts, .message = *message};
            made->message.from = transport->rank;
            transfer_send(transport, mpi, &made->sent, transport->peers[q].world,
                          channel_tag(transport, CHANNEL_CONTROL), &made->message,
                          sizeof made->message);
            transport->posts = made;
        }
    }
}

/* ---- Progress; the caller holds the lock ---- */

/* The text of a control message for a backend. */
typedef struct backend_text {
    hal_mailbox_offer offer;
    hal_plugin_comm_id id;
} backend_text;

_Static_assert(sizeof(backend_text) <= HAL_MAILBOX_MESSAGE_BYTES, "an offer fits into a message");

static void backend_apply(hal_transport *transport, const control_message *message)
{
    hal_mailbox_rank *rank = &transport->header->ranks[message->from];
    backend_text text;
    memcpy(&text, message->text, sizeof text);
    if (message->number == HAL_MAILBOX_BACKEND_OFFERED) {
        rank->offer = text.offer;
        if (message->from == 0) {
            transport->header->backend_id = text.id;
        }
    }
    atomic_store_explicit(&rank->backend, (uint32_t)message->number, memory_order_release);
}

static void control_apply(hal_transport *transport, const control_message *message)
{
    peer *from = &transport->peers[message->from];
    if (message->what == CONTROL_LEAVE) {
        from->last = message->number;
        from->has_left = true;
    } else if (message->what == CONTROL_FAILURE) {
        has_lost_rank |= message->is_lost != 0;
        if (transport->header) {
            hal_mailbox_header_fail(transport->header, message->failed_rank, message->status,
                                    message->text);
        }
    } else if (message->what == CONTROL_SPLIT && transport->header) {
        hal_mailbox_rank *rank = &transport->header->ranks[message->from];
        const uint64_t side = message->number % 2;
        rank->colors[side] = message->color;
        rank->keys[side] = message->key;
        from->tags[side] = message->tag;
        atomic_store_explicit(&rank->split, message->number, memory_order_release);
    } else if (message->what == CONTROL_BACKEND && transport->header) {
        backend_apply(transport, message);
    }
}

static void transport_progress(hal_transport *transport, const hal_mpi *mpi)
{
    while (transport->error == 0 && transfer_is_done(transport, mpi, &transport->control_in)) {
        control_apply(transport, &transport->control);
        control_receive_next(transport, mpi);
    }
    for (post **at = &transport->posts; *at;) {
        post *sent = *at;
        if (transfer_is_done(transport, mpi, &sent->sent)) {
            *at = sent->next;
            free(sent);
        } else {
            at = &sent->next;
        }
    }
}

/* Whether nothing more comes for a rank that has left. */
static bool transport_is_finished(hal_transport *transport, const hal_mpi *mpi)
{
    bool finished = !transport->posts;
    for (uint32_t q = 0; q < transport->count; q++) {
        peer *from = &transport->peers[q];
        while (q != transport->rank && transport->error == 0 &&
               (from->has_message || transfer_is_done(transport, mpi, &from->steps_in))) {
            step_receive_next(transport, mpi, from);
        }
        finished &= q == transport->rank || (from->has_left && from->received == from->last &&
                                             transfer_is_done(transport, mpi, &from->steps_out) &&
                                             transfer_is_done(transport, mpi, &from->data_in) &&
                                             transfer_is_done(transport, mpi, &from->data_out));
    }
    return finished && transport->error == 0;
}

/* Whether MPI still uses memory of the transfer. An error of the transport says nothing of that. */
static bool transfer_is_in_use(hal_transport *transport, const hal_mpi *mpi, transfer *one)
{
    if (one->is_active && transport->error != ENDED) {
        int done = 0;
        const int error = mpi->call->test(&one->request, &done);
        transport_note_error(transport, error);
        one->is_active = error != 0 || !done;
    }
    return one->is_active;
}

static bool transport_has_data(hal_transport *transport, const hal_mpi *mpi)
{
    bool has = false;
    for (uint32_t q = 0; q < transport->count; q++) {
        has |= transfer_is_in_use(transport, mpi, &transport->peers[q].data_in);
        has |= transfer_is_in_use(transport, mpi, &transport->peers[q].data_out);
    }
    return has;
}

/* The data has been received and sent, see link_is_finished. */
static void transport_free(hal_transport *transport, const hal_mpi *mpi)
{
    for (uint32_t q = 0; q < transport->count; q++) {
        transfer_cancel(&transport->peers[q].steps_in, mpi);
    }
    transfer_cancel(&transport->control_in, mpi);
    free(transport->messages);
    free(transport);
}

/* All transports: those that were left are freed when they are finished. */
static void transports_progress(const hal_mpi *mpi)
{
    for (hal_transport **at = &transports; *at;) {
        hal_transport *transport = *at;
        transport_progress(transport, mpi);
        if (!transport->header && transport_is_finished(transport, mpi)) {
            *at = transport->next;
            transport_free(transport, mpi);
        } else {
            at = &transport->next;
        }
    }
}

/* When the process ends: ranks that did not leave have failed. Returns whether MPI can be ended,
 * which waits for the other processes. */
static bool transports_end(hal_mpi *mpi)
{
    const uint64_t begin = hal_clock_ns();
    bool in_order = true;
    for (hal_transport *transport = transports; transport; transport = transport->next) {
        if (transport->header) {
            control_message message = {.what = CONTROL_FAILURE,
                                       .failed_rank = transport->rank,
                                       .is_lost = 1,
                                       .status = HAL_ERROR_INVALID_STATE};
            snprintf(message.text, sizeof message.text,
                     "rank %u of %u: its process ended without leaving the communicator",
                     transport->rank, transport->count);
            control_send(transport, mpi, &message);
            in_order = false;
        }
    }
    while (transports && hal_clock_ns() - begin < END_NS) {
        transports_progress(mpi);
        hal_pause_ns(PAUSE_NS);
    }
    for (hal_transport *transport = transports; transport; transport = transport->next) {
        in_order &= transport->error == 0;
        transport->error = ENDED;
    }
    return in_order && !has_lost_rank; /* a rank may have told it just now */
}

/* ---- Creation ---- */

static hal_transport *transport_create(uint32_t rank, uint32_t count)
{
    hal_transport *transport = calloc(1, sizeof *transport + count * sizeof(peer));
    uint8_t *messages = calloc(2 * (size_t)count, STEP_BYTES);
    if (!transport || !messages) {
        free(transport);
        free(messages);
        return NULL;
    }
    transport->messages = messages;
    transport->rank = rank;
    transport->count = count;
    for (uint32_t q = 0; q < count; q++) {
        transport->peers[q].world = q;
        transport->peers[q].in = (step_message *)(void *)(messages + 2 * (size_t)q * STEP_BYTES);
        transport->peers[q].out =
            (step_message *)(void *)(messages + (2 * (size_t)q + 1) * STEP_BYTES);
    }
    return transport;
}

/* Begins to receive. The caller holds the lock. */
static hal_status transport_start(hal_transport *transport, hal_mpi *mpi, uint32_t number,
                                  const char *function)
{
    transport->number = number;
    if (number > mpi->world.tag_limit / CHANNELS - 1) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "%s: MPI: expected fewer than %u communicators",
                        function, number);
    }
    mpi->next_tag = number >= mpi->next_tag ? number + 1 : mpi->next_tag;
    control_receive_next(transport, mpi);
    for (uint32_t q = 0; q < transport->count; q++) {
        if (q != transport->rank) {
            step_receive_next(transport, mpi, &transport->peers[q]);
            transport->peers[q].received = 0;
        }
    }
    transport->next = transports;
    transports = transport;
    return HAL_OK;
}

typedef struct join_state {
    control_message out;
    control_message in[HAL_COMM_MAX_RANKS];
    transfer sent[HAL_COMM_MAX_RANKS], received[HAL_COMM_MAX_RANKS];
} join_state;

/* Messages of earlier communicators, which timed out here, are passed over. Returns the number of
 * ranks that are missing. The caller holds the lock. */
static uint32_t join_progress(hal_transport *transport, const hal_mpi *mpi, join_state *join)
{
    uint32_t missing = 0;
    for (uint32_t q = 0; q < transport->count; q++) {
        if (q != transport->rank) {
            while (transport->error == 0 && transfer_is_done(transport, mpi, &join->received[q]) &&
                   join->in[q].number < join->out.number) {
                transfer_receive(transport, mpi, &join->received[q], q, JOIN_TAG, &join->in[q],
                                 sizeof join->in[q]);
            }
            missing +=
                join->received[q].is_active || !transfer_is_done(transport, mpi, &join->sent[q]);
        }
    }
    return missing;
}

static hal_status join_fail_missing(const hal_transport *transport, const join_state *join,
                                    uint64_t limit_ns, const char *function)
{
    char missing[128] = "";
    for (uint32_t q = 0; q < transport->count; q++) {
        const size_t used = strlen(missing);
        if (join->received[q].is_active || join->sent[q].is_active) {
            snprintf(missing + used, sizeof missing - used, " %u", q);
        }
    }
    return hal_fail(HAL_ERROR_TIMEOUT,
                    "%s: comm: expected all %u ranks within %s s, missing are ranks%s", function,
                    transport->count, HAL_NUMBER((double)limit_ns / 1e9, 1), missing);
}

/* Exchanges a message with every rank. */
static hal_status join_run(hal_transport *transport, join_state *join, uint64_t limit_ns,
                           const char *function)
{
    const uint64_t begin = hal_clock_ns();
    hal_status status = HAL_OK;
    hal_mpi *mpi = hal_mpi_lock();
    join->out =
        (control_message){.what = CONTROL_JOIN, .number = ++mpi->joins, .tag = mpi->next_tag};
    for (uint32_t q = 0; q < transport->count; q++) {
        if (q != transport->rank) {
            transfer_send(transport, mpi, &join->sent[q], q, JOIN_TAG, &join->out,
                          sizeof join->out);
            transfer_receive(transport, mpi, &join->received[q], q, JOIN_TAG, &join->in[q],
                             sizeof join->in[q]);
        }
    }
    while (transport->error == 0 && join_progress(transport, mpi, join) > 0 && status == HAL_OK) {
        if (hal_clock_ns() - begin > limit_ns) {
            status = join_fail_missing(transport, join, limit_ns, function);
            has_lost_rank = true;
        }
        hal_mpi_unlock();
        hal_pause_ns(PAUSE_NS);
        mpi = hal_mpi_lock();
    }
    uint32_t number = join->out.tag;
    for (uint32_t q = 0; q < transport->count; q++) {
        transfer_cancel(&join->received[q], mpi);
        transfer_forget(&join->sent[q], mpi);
        number = join->in[q].tag > number ? join->in[q].tag : number;
    }
    if (status == HAL_OK && transport->error != 0) {
        char text[256];
        mpi->call->describe(transport->error, text, sizeof text);
        status = hal_fail(HAL_ERROR_IO, "%s: MPI: %s", function, text);
    }
    status = status == HAL_OK ? transport_start(transport, mpi, number, function) : status;
    hal_mpi_unlock();
    return status;
}

hal_status hal_transport_join(uint32_t rank, uint32_t count, hal_mpi_choice choice,
                              uint64_t time_limit_ns, const char *function,
                              hal_transport **transport)
{
    HAL_UNCANCELLED;
    HAL_TRY(hal_mpi_start(choice, transports_end, function));
    const hal_mpi_world world = hal_mpi_lock()->world;
    hal_mpi_unlock();
    if (world.rank != rank || world.count != count) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: MPI: expected rank %u of %u, as the launcher says, got rank %u of %u "
                        "from %s; use the launcher of that library",
                        function, rank, count, world.rank, world.count, world.library);
    }
    join_state *join = calloc(1, sizeof *join);
    *transport = join ? transport_create(rank, count) : NULL;
    if (!*transport) {
        free(join);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    hal_status status = join_run(*transport, join, time_limit_ns, function);
    if (status != HAL_OK) {
        free((*transport)->messages);
        free(*transport);
        *transport = NULL;
    }
    /* A library may still send messages of a join that failed. */
    if (status == HAL_OK) {
        free(join);
    }
    return status;
}

hal_status hal_transport_divide(const hal_transport *whole, const uint32_t *members, uint32_t rank,
                                uint32_t count, uint64_t split, hal_transport **part)
{
    HAL_UNCANCELLED;
    uint32_t number = 0;
    hal_transport *transport = *part = transport_create(rank, count);
    if (!transport) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_comm_split: no host memory");
    }
    hal_mpi *mpi = hal_mpi_lock();
    for (uint32_t i = 0; i < count; i++) {
        const peer *member = &whole->peers[members[i]];
        transport->peers[i].world = member->world;
        number = member->tags[split % 2] > number ? member->tags[split % 2] : number;
    }
    const hal_status status = transport_start(transport, mpi, number, "hal_comm_split");
    hal_mpi_unlock();
    if (status != HAL_OK) {
        free(transport->messages);
        free(transport);
        *part = NULL;
    }
    return status;
}

uint32_t hal_transport_count(const hal_transport *transport)
{
    return transport->count;
}

uint32_t hal_transport_rank(const hal_transport *transport)
{
    return transport->rank;
}

void hal_transport_attach(hal_transport *transport, hal_mailbox_header *header)
{
    hal_mpi_lock();
    transport->header = header;
    hal_mpi_unlock();
}

void hal_transport_close(hal_transport *transport)
{
    HAL_UNCANCELLED;
    hal_mpi *mpi = hal_mpi_lock();
    const control_message message = {.what = CONTROL_LEAVE, .number = transport->published};
    transport->header = NULL;
    control_send(transport, mpi, &message);
    transports_progress(mpi);
    hal_mpi_unlock();
}

/* ---- Use ---- */

/* Unlocks MPI and returns the transport's error. */
static hal_status transport_unlock(const hal_transport *transport, const hal_mpi *mpi)
{
    const int error = transport->error;
    char text[256] = "the process is about to end";
    if (error != 0 && error != ENDED && error != NO_MEMORY) {
        mpi->call->describe(error, text, sizeof text);
    }
    hal_mpi_unlock();
    return error == 0           ? HAL_OK
           : error == NO_MEMORY ? hal_fail(HAL_ERROR_OUT_OF_MEMORY, "MPI: no host memory")
                                : hal_fail(HAL_ERROR_IO, "MPI: %s", text);
}

hal_status hal_transport_update(hal_transport *transport)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    transports_progress(mpi);
    return transport_unlock(transport, mpi);
}

void hal_transport_send_failure(hal_transport *transport, uint32_t rank, hal_status status,
                                const char *text)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    control_message message = {.what = CONTROL_FAILURE,
                               .failed_rank = rank,
                               .is_lost = status == HAL_ERROR_TIMEOUT,
                               .status = status};
    snprintf(message.text, sizeof message.text, "%s", text);
    has_lost_rank |= status == HAL_ERROR_TIMEOUT;
    control_send(transport, mpi, &message);
    hal_mpi_unlock();
}

hal_status hal_transport_send_split(hal_transport *transport, uint64_t number, int32_t color,
                                    int32_t key)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    const control_message message = {
        .what = CONTROL_SPLIT, .number = number, .tag = mpi->next_tag, .color = color, .key = key};
    transport->peers[transport->rank].tags[number % 2] = mpi->next_tag;
    control_send(transport, mpi, &message);
    return transport_unlock(transport, mpi);
}

void hal_transport_send_backend(hal_transport *transport, uint32_t state,
                                const hal_mailbox_offer *offer, const hal_plugin_comm_id *id)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    control_message message = {.what = CONTROL_BACKEND, .number = state};
    backend_text text = {.offer = *offer};
    if (id) {
        text.id = *id;
    }
    memcpy(message.text, &text, sizeof text);
    control_send(transport, mpi, &message);
    transport_unlock(transport, mpi);
}

hal_status hal_transport_look(hal_transport *transport, uint32_t q, uint64_t number)
{
    HAL_UNCANCELLED;
    peer *from = &transport->peers[q];
    hal_status status = HAL_OK;
    const hal_mpi *mpi = hal_mpi_lock();
    hal_mailbox_rank *rank = &transport->header->ranks[q];
    while (transport->error == 0 && status == HAL_OK) {
        if (!from->has_message) {
            from->has_message = transfer_is_done(transport, mpi, &from->steps_in);
        }
        if (!from->has_message || from->in->number > number) {
            break;
        }
        hal_mailbox_message *message = &rank->messages[from->in->number % 2];
        message->call = from->in->call;
        atomic_store(&rank->consumed, from->in->number - 1);
        atomic_store(&message->step, from->in->number);
        if (from->in->number == number) {
            break;
        }
        if (from->in->bytes > 0 && from->taken < from->in->number) {
            status = hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                              "step %llu: expected the same collective on all ranks, got data of "
                              "rank %u for rank %u, which expects none",
                              (unsigned long long)from->in->number, q, transport->rank);
        }
        step_receive_next(transport, mpi, from);
    }
    if (from->has_left && from->last < number) {
        atomic_store(&rank->left, 1);
    }
    const hal_status error = transport_unlock(transport, mpi);
    return status == HAL_OK ? error : status;
}

hal_status hal_transport_publish(hal_transport *transport, uint64_t number,
                                 const hal_mailbox_call *call, uint32_t targets,
                                 const hal_segments *out)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    for (uint32_t q = 0; q < transport->count && transport->error == 0; q++) {
        peer *to = &transport->peers[q];
        if (q == transport->rank) {
            continue;
        }
        const uint32_t segment = out->count > 1 ? q : 0;
        const uint8_t *data = out->count > 0 ? out->host + segment * out->stride : NULL;
        const uint64_t bytes =
            hal_step_has(targets, q) && out->count > 0 ? hal_segment_bytes(out, segment) : 0;
        const uint64_t own = inline_part(bytes);
        *to->out = (step_message){.number = number, .bytes = bytes, .call = *call};
        if (own > 0) {
            memcpy(to->out->data, data, own);
        }
        transfer_send(transport, mpi, &to->steps_out, to->world,
                      channel_tag(transport, CHANNEL_STEPS), to->out, sizeof *to->out + own);
        if (bytes > own) {
            transfer_send(transport, mpi, &to->data_out, to->world,
                          channel_tag(transport, CHANNEL_DATA), data + own, bytes - own);
        }
    }
    transport->published = number;
    return transport_unlock(transport, mpi);
}

hal_status hal_transport_is_sent(hal_transport *transport, uint32_t *q, bool *sent)
{
    HAL_UNCANCELLED;
    const hal_mpi *mpi = hal_mpi_lock();
    *sent = 1;
    for (uint32_t r = 0; r < transport->count && *sent; r++) {
        *q = r;
        *sent = transfer_is_done(transport, mpi, &transport->peers[r].steps_out) &&
                transfer_is_done(transport, mpi, &transport->peers[r].data_out);
    }
    return transport_unlock(transport, mpi);
}

hal_status hal_transport_take(hal_transport *transport, uint32_t q, uint64_t number, void *data,
                              uint64_t bytes, bool *done)
{
    HAL_UNCANCELLED;
    peer *from = &transport->peers[q];
    const hal_mpi *mpi = hal_mpi_lock();
    *done = from->taken == number;
    if (!*done && from->in->bytes != bytes) {
        const uint64_t sent = from->in->bytes;
        hal_mpi_unlock();
        return hal_fail(
            HAL_ERROR_INVALID_ARGUMENT, "step %llu: expected %llu bytes of rank %u, got %llu",
            (unsigned long long)number, (unsigned long long)bytes, q, (unsigned long long)sent);
    }
    const uint64_t own = inline_part(bytes);
    if (!*done && !from->data_in.is_active && own > 0) {
        memcpy(data, from->in->data, own);
    }
    if (!*done && own == bytes) {
        *done = true;
    } else if (!*done && transport->error == 0) {
        if (!from->data_in.is_active) {
            transfer_receive(transport, mpi, &from->data_in, from->world,
                             channel_tag(transport, CHANNEL_DATA), (uint8_t *)data + own,
                             bytes - own);
        }
        *done = transport->error == 0 && transfer_is_done(transport, mpi, &from->data_in);
    }
    from->taken = *done ? number : from->taken;
    return transport_unlock(transport, mpi);
}

bool hal_transport_drop(hal_transport *transport)
{
    HAL_UNCANCELLED;
    const uint64_t begin = hal_clock_ns();
    const hal_mpi *mpi = hal_mpi_lock();
    for (uint32_t q = 0; q < transport->count && transport->error != ENDED; q++) {
        if (transport->peers[q].data_in.is_active) {
            mpi->call->cancel(&transport->peers[q].data_in.request);
        }
    }
    bool has_data = transport_has_data(transport, mpi);
    while (has_data && transport->error != ENDED && hal_clock_ns() - begin < END_NS) {
        hal_mpi_unlock();
        hal_pause_ns(PAUSE_NS);
        mpi = hal_mpi_lock();
        has_data = transport_has_data(transport, mpi);
    }
    hal_mpi_unlock();
    return has_data;
}
