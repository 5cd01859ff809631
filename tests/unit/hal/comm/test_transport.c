/* Links over a table of MPI functions of the test, where rank 1 sends what rank 0 sends: data of
 * several sizes, failures with messages in flight, and libraries that cannot be opened. */
#include "unit.h"

#include "comm/mailbox.h"

#include <stdio.h>
#include <string.h>

enum { BYTES = 100000, MESSAGES = 64, RECEIVES = 256 };

typedef struct message {
    uint32_t tag, bytes;
    uint8_t data[32768];
} message;

static message sent[MESSAGES];
static uint32_t sent_count;

/* Of data messages. */
static int tests_left; /* until they are complete; -1: never */
static int in_use;     /* that are not complete */
static int fails;      /* every call */
static int echoes;     /* data messages are sent like others, not only counted */

/* A request in flight: the receive, or null for a send of data. */
typedef struct receive {
    void *target;
    uint32_t tag;
} receive;

static receive receives[RECEIVES];
static uint32_t receive_count;

/* Each communicator has three tags after the 0 of joins: steps, data, control. */
static int is_data(uint32_t tag)
{
    return !echoes && tag % 3 == 2;
}

static int fake_send(const void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                     hal_mpi_request *request)
{
    request->bits = is_data(tag) ? UINT64_MAX : 0;
    in_use += is_data(tag);
    if (!is_data(tag) && bytes <= sizeof sent[0].data && sent_count < MESSAGES) {
        sent[sent_count] = (message){.tag = tag, .bytes = bytes};
        memcpy(sent[sent_count++].data, data, bytes);
    }
    return fails;
}

static int fake_receive(void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                        hal_mpi_request *request)
{
    assert_true(receive_count < RECEIVES);
    in_use += is_data(tag);
    receives[receive_count++] = (receive){data, tag};
    request->bits = receive_count;
    return fails;
}

static int fake_test(hal_mpi_request *request, int *done)
{
    *done = request->bits == 0;
    if (request->bits == UINT64_MAX ||
        (request->bits > 0 && is_data(receives[request->bits - 1].tag))) {
        tests_left -= tests_left > 0;
        *done = tests_left == 0;
        in_use -= *done;
        return fails;
    }
    for (uint32_t i = 0; !*done && i < sent_count; i++) {
        if (sent[i].tag == receives[request->bits - 1].tag) {
            memcpy(receives[request->bits - 1].target, sent[i].data, sent[i].bytes);
            sent[i].tag = UINT32_MAX;
            *done = 1;
        }
    }
    return fails;
}

static void fake_end(hal_mpi_request *request)
{
}

static void fake_describe(int error, char *text, uint32_t bytes)
{
    snprintf(text, bytes, "the test's error %d", error);
}

static const hal_mpi_entries fake = {.version = HAL_MPI_ENTRIES_VERSION,
                                     .send = fake_send,
                                     .receive = fake_receive,
                                     .test = fake_test,
                                     .cancel = fake_end,
                                     .forget = fake_end,
                                     .describe = fake_describe};

/* Rank 0 of two, whose first step has sent and receives more than a step message holds. */
static hal_mailbox *step_begin(uint8_t *data)
{
    const hal_segments out = {.host = data, .count = 1, .bytes = BYTES, .total = BYTES};
    const hal_mailbox_call call = {.count = BYTES};
    hal_mailbox *mailbox = NULL;
    hal_transport *transport = NULL;
    bool done = true;
    hal_mpi *mpi = hal_mpi_lock();
    mpi->call = &fake;
    mpi->world = (hal_mpi_world){.count = 2, .tag_limit = 32767, .is_serialized = 1};
    hal_mpi_unlock();
    in_use = fails = 0;
    tests_left = -1;
    assert_int_equal(
        hal_transport_join(0, 2, (hal_mpi_choice){0}, UINT64_C(1000000000), "test", &transport),
        HAL_OK);
    assert_int_equal(hal_mailbox_create_linked(transport, "test", &mailbox), HAL_OK);
    assert_int_equal(hal_transport_publish(transport, 1, &call, HAL_STEP_ALL, &out), HAL_OK);
    assert_int_equal(hal_transport_look(transport, 1, 1), HAL_OK);
    assert_int_equal(hal_transport_take(transport, 1, 1, data, BYTES, &done), HAL_OK);
    assert_false(done);
    assert_int_equal(in_use, 2);
    return mailbox;
}

/* Small data comes with the message of the step, a little more in two messages, much in its own. */
TEST(data_of_every_size_arrives)
{
    static const uint64_t sizes[] = {1, 3900, 4096, 7900, 8100, 30000};
    static uint8_t data[BYTES], received[BYTES];
    hal_mailbox *mailbox = step_begin(data);
    hal_transport *transport = mailbox->transport;
    tests_left = 2;
    for (bool done = false; !done;) {
        assert_int_equal(hal_transport_take(transport, 1, 1, data, BYTES, &done), HAL_OK);
    }
    echoes = 1;
    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t bytes = sizes[i], number = 2 + i;
        const hal_segments out = {.host = data, .count = 1, .bytes = bytes, .total = bytes};
        const hal_mailbox_call call = {.count = bytes};
        uint32_t missing = 0;
        bool done = false;
        for (uint64_t k = 0; k < bytes; k++) {
            data[k] = (uint8_t)(k * 7 + k / 251 + i + 1);
        }
        memset(received, 0, sizeof received);
        assert_int_equal(hal_transport_publish(transport, number, &call, HAL_STEP_ALL, &out),
                         HAL_OK);
        assert_int_equal(hal_transport_look(transport, 1, number), HAL_OK);
        for (int attempt = 0; !done && attempt < 10; attempt++) {
            assert_int_equal(hal_transport_take(transport, 1, number, received, bytes, &done),
                             HAL_OK);
        }
        assert_true(done);
        assert_memory_equal(received, data, bytes);
        assert_int_equal(received[bytes], 0);
        assert_int_equal(hal_transport_is_sent(transport, &missing, &done), HAL_OK);
        assert_true(done);
    }
    echoes = 0;
    hal_mailbox_close(mailbox, 0);
}

/* MPI has matched the messages when the step fails. */
TEST(messages_in_flight_are_awaited)
{
    static uint8_t data[BYTES];
    hal_mailbox *mailbox = step_begin(data);
    tests_left = 5;
    assert_int_equal(hal_transport_drop(mailbox->transport), 0);
    assert_int_equal(in_use, 0);
    hal_mailbox_close(mailbox, 0);
}

TEST(messages_that_do_not_end_are_reported)
{
    static uint8_t data[BYTES];
    hal_mailbox *mailbox = step_begin(data);
    assert_int_not_equal(hal_transport_drop(mailbox->transport), 0);
    assert_int_equal(in_use, 2);
    hal_mailbox_close(mailbox, 0);
}

/* The first error is the communicator's failure for everyone who asks later. */
TEST(an_error_of_mpi_is_on_the_mailbox)
{
    static uint8_t data[BYTES];
    hal_mailbox *mailbox = step_begin(data);
    fails = 7;
    assert_int_equal(hal_mailbox_check(mailbox, "test"), HAL_ERROR_IO);
    assert_non_null(
        strstr(hal_status_message(), "test: comm: rank 0 of 2: MPI: the test's error 7"));
    assert_int_equal(atomic_load(&mailbox->header->failure), 2);
    assert_int_equal(mailbox->header->failed_status, HAL_ERROR_IO);
    hal_mailbox_close(mailbox, 0);
}

static bool at_exit(hal_mpi *mpi)
{
    return true;
}

/* A library that the user has named is used or refused. */
TEST(a_named_library_has_no_replacement)
{
    hal_mpi *mpi = hal_mpi_lock();
    mpi->call = NULL;
    hal_mpi_unlock();
    assert_int_equal(hal_mpi_start((hal_mpi_choice){"no-such", 1}, at_exit, "test"),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(hal_status_message(), "test: HAL_COMM_TRANSPORT: expected"));
    assert_non_null(strstr(hal_status_message(), "no-such.so: cannot open"));
}

UNIT_MAIN(NULL, NULL)
