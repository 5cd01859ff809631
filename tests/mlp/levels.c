/* Trains the network of examples/mlp with strict products, and with one and two levels of
 * Strassen's algorithm forced, which the class NORMWISE would not choose for such small products.
 * Exits 0 when the accuracies differ by at most 0.3 points, and the losses differ at all: equal
 * losses would mean that no levels were used.
 * usage: mlp_levels DATA */
#include "mlp/train.h"

#include <math.h>
#include <stdio.h>

static const double most_difference = 0.003;

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
}

static int load(const char *folder, const char *name, digits_data *data)
{
    char path[4096], error[4400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return digits_data_load(path, data, error, sizeof error) || !fail("data", error);
}

static hal_status train(ops_context *context, uint32_t levels, const digits_data *training,
                        const digits_data *test, train_outcome *outcome)
{
    const train_settings settings = {.layers = 3,
                                     .width = 128,
                                     .precision = levels > 0 ? HAL_GEMM_NORMWISE : HAL_GEMM_STRICT,
                                     .levels = levels,
                                     .epochs = 6,
                                     .seed = 1,
                                     .quiet = 1};
    const hal_status status = train_and_test(context, NULL, &settings, training, test, outcome);
    printf("%u levels: accuracy %.2f %%, loss %.9f, %.1f us a step\n", levels,
           100 * outcome->accuracy, outcome->loss, outcome->step_us);
    return status;
}

static int compare(ops_context *context, const digits_data *training, const digits_data *test)
{
    train_outcome outcomes[3] = {{0}}; /* by levels */
    for (uint32_t levels = 0; levels < 3; levels++) {
        train_outcome *outcome = &outcomes[levels];
        if (train(context, levels, training, test, outcome) != HAL_OK) {
            return fail("training", hal_status_message());
        }
        if (!(fabs(outcome->accuracy - outcomes[0].accuracy) <= most_difference)) {
            return fail("accuracy", "expected at most 0.3 points from that of strict products");
        }
        if (levels > 0 && outcome->loss == outcomes[levels - 1].loss) {
            return fail("loss", "expected another one than with fewer levels");
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    digits_data training = {0}, test = {0};
    int failed = count != 2 || !load(arguments[1], "train.csv", &training) ||
                 !load(arguments[1], "test.csv", &test);
    if (!failed) {
        failed = hal_device_open("cpu", &device) || hal_queue_create(device, &queue) ||
                 ops_context_create(queue, &context);
        failed = failed ? fail("device", hal_status_message()) : compare(context, &training, &test);
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    digits_data_free(&training);
    digits_data_free(&test);
    return failed;
}
