/* MTLFence, MTLEvent, MTLSharedEvent, and what the host knows to have finished. */
#import "classes.h"

#include <errno.h>
#include <time.h>

static struct {
    pthread_mutex_t mutex;
    standin_order order;
} host = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void standin_host_sees(const standin_order *order)
{
    pthread_mutex_lock(&host.mutex);
    standin_order_join(&host.order, order);
    pthread_mutex_unlock(&host.mutex);
}

void standin_host_order(standin_order *order)
{
    pthread_mutex_lock(&host.mutex);
    standin_order_join(order, &host.order);
    pthread_mutex_unlock(&host.mutex);
}

@implementation StandinFence
@end

@implementation StandinEvent
- (id)initWithDevice:(id<MTLDevice>)owner
{
    self = [super initWithDevice:owner];
    pthread_mutex_init(&mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return self;
}
- (void)dealloc
{
    pthread_mutex_destroy(&mutex);
    pthread_cond_destroy(&changed);
    [super dealloc];
}
- (uint64_t)signaledValue
{
    pthread_mutex_lock(&mutex);
    const uint64_t now = value;
    standin_host_sees(&order);
    pthread_mutex_unlock(&mutex);
    return now;
}
- (void)setSignaledValue:(uint64_t)wanted
{
    pthread_mutex_lock(&mutex);
    const uint64_t old = value;
    value = wanted > value ? wanted : value;
    standin_host_order(&order);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (wanted < old) {
        standin_violation(NULL, "an event goes backwards: the host sets %llu after %llu",
                          (unsigned long long)wanted, (unsigned long long)old);
    }
}
- (BOOL)signal:(uint64_t)wanted order:(const standin_order *)before message:(char *)message
{
    pthread_mutex_lock(&mutex);
    const uint64_t old = value;
    value = wanted > value ? wanted : value;
    standin_order_join(&order, before);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (wanted <= old) {
        standin_violation(message, "an event goes backwards: a command buffer signals %llu after "
                          "%llu", (unsigned long long)wanted, (unsigned long long)old);
        return NO;
    }
    return YES;
}
- (void)await:(uint64_t)wanted order:(standin_order *)before
{
    pthread_mutex_lock(&mutex);
    while (value < wanted) {
        pthread_cond_wait(&changed, &mutex);
    }
    standin_order_join(before, &order);
    pthread_mutex_unlock(&mutex);
}
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds
{
    struct timespec end;
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const uint64_t seconds = milliseconds / 1000 < 1000000000 ? milliseconds / 1000 : 1000000000;
    end.tv_sec += (time_t)seconds;
    end.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&mutex);
    while (value < wanted && failed != ETIMEDOUT) {
        failed = pthread_cond_timedwait(&changed, &mutex, &end);
    }
    const BOOL reached = value >= wanted;
    if (reached) {
        standin_host_sees(&order);
    }
    pthread_mutex_unlock(&mutex);
    return reached;
}
@end
