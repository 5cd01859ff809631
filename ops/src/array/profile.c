/* Groups of a profile, see profile.h. */
#include "profile.h"

#include <hal/profile.h>
#include <stdio.h>
#include <string.h>

typedef struct call_list {
    char text[1000];
    size_t length;
} call_list;

static void list_add(call_list *list, const ops_array *node)
{
    const char *name = ops_node_operation_name(node), *between = list->length ? " " : "";
    const ops_site site = ops_sites_get(&node->owner->sites, node->site);
    char *end = list->text + list->length;
    const size_t room = sizeof list->text - list->length;
    const int more = site.file
                         ? snprintf(end, room, "%s%s@%s:%u", between, name, site.file, site.line)
                         : snprintf(end, room, "%s%s", between, name);
    const size_t length = list->length + (more > 0 ? (size_t)more : 0);
    list->length = length < sizeof list->text ? length : sizeof list->text - 1;
}

static void list_add_cluster(call_list *list, const ops_fusion_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        list_add(list, cluster->nodes[i]);
    }
}

const char *ops_profile_boundary(const ops_array *first, const ops_array *user)
{
    if (first->needs_memory) {
        return "a product, softmax or move reads its operand from memory";
    }
    if (!ops_node_is_needed_once(first, 1)) {
        return "the program holds the result, or several kernels read it";
    }
    if (!ops_node_is_elementwise(first)) {
        return "a kernel has one reduction, product or move, except for rows along one axis";
    }
    if (!ops_node_has_shape_of(first, user)) {
        return "the next call has another shape";
    }
    return ops_node_has_order_of(first, user)
               ? "the next call would exceed the operations or arrays of one kernel"
               : "the next call has another order of axes";
}

void ops_profile_begin_plan(const ops_fusion_plan *plan, const char *end)
{
    call_list list = {.length = 0};
    if (!hal_profile_is_on()) {
        return;
    }
    if (plan->has_prologue) {
        list_add_cluster(&list, &plan->prologue);
    }
    if (plan->anchor) {
        list_add(&list, plan->anchor);
    }
    if (plan->has_epilogue) {
        list_add_cluster(&list, &plan->epilogue);
    }
    hal_profile_group_begin(plan->context->queue, list.text,
                            end ? end : "the program asks for the values");
}

void ops_profile_begin_joined(ops_context *context, ops_array *const *nodes, uint32_t count)
{
    call_list list = {.length = 0};
    if (!hal_profile_is_on()) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        list_add(&list, nodes[i]);
    }
    hal_profile_group_begin(context->queue, list.text, "plans of this form are joined");
}

void ops_profile_label(hal_buffer *buffer, const ops_array *result)
{
    if (hal_profile_is_on()) {
        hal_buffer_set_label(buffer, ops_node_operation_name(result));
    }
}

void ops_profile_end(ops_context *context)
{
    if (hal_profile_is_on()) {
        hal_profile_group_end(context->queue);
    }
}
