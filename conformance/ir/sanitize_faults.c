/* sanitize_faults.c: the table of planted faults. */
#include "ir/sanitize_faults.h"

/* Bindings x (f32, read), y (f32, written) and z (u32, both), which hold 1.0 and 1; the work-item
 * is %l of group %g and %i of all. */
const char sanitize_head[] = "group 64 1 1\n"
                             "binding x f32 read\n"
                             "binding y f32 write\n"
                             "binding z u32 read_write\n";

#define IDS                    \
    "%l = local_id u32 x\n"    \
    "%g = group_id u32 x\n"    \
    "%c0 = constant u32 0\n"   \
    "%c1 = constant u32 1\n"   \
    "%c2 = constant u32 2\n"   \
    "%c64 = constant u32 64\n" \
    "%f1 = constant f32 1.0\n" \
    "%b = mul u32 %g, %c64\n"  \
    "%i = add u32 %b, %l\n"

#define BOUNDS "access out of range"

const sanitize_fault sanitize_faults[] = {
    {.name = "bounds/store_past_the_end",
     .check = "bounds",
     .text = IDS "store y[%i@], %f1\n",
     .right = "",
     .wrong = " + 1",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group (3, 0, 0), value 1"}},
    {.name = "bounds/load_before_the_begin",
     .check = "bounds",
     .text = IDS "%v = load f32 x[%i@]\nstore y[%i], %v\n",
     .right = "",
     .wrong = " - 1",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/negative_index",
     .check = "bounds",
     .text = IDS "%s = cast i32 %i\n%o = constant i32 @\n%j = sub i32 %s, %o\n"
                 "%n = constant i32 0\n%k = max i32 %j, %n\n%p = select i32 %t, %k, %j\n"
                 "store y[%p], %f1\n",
     .right = "0\n%t = constant bool true",
     .wrong = "1\n%t = constant bool false",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/stride",
     .check = "bounds",
     .text = IDS "%j = mul u32 %i, %c@\n%v = load f32 x[%j]\nstore y[%i], %v\n",
     .right = "1",
     .wrong = "2",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index "}},
    {.name = "bounds/wide_index",
     .check = "bounds",
     .text = IDS "%w = cast u64 %i\n%o = constant u64 @\n%j = add u64 %w, %o\n"
                 "store y[%j], %f1\n",
     .right = "0",
     .wrong = "0x100000000",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index 42949"}},
    {.name = "bounds/atomic",
     .check = "bounds",
     .text = IDS "%o = constant u32 @\n%j = add u32 %l, %o\n%v = atomic add u32 z[%j], %c1\n",
     .right = "0",
     .wrong = "193",
     .words = {BOUNDS, "atomic add u32 z[", "binding \"z\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/shared_store",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "store s[%l@], %f1\nbarrier\n%v = load f32 s[%l]\n"
             "store y[%i], %v\n",
     .right = "",
     .wrong = " + 1",
     .words = {BOUNDS, "(store s[", "shared array \"s\" of 64 elements, index 64",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/shared_load",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "store s[%l], %f1\nbarrier\n%v = load f32 s[%l@]\n"
             "store y[%i], %v\n",
     .right = "",
     .wrong = " - 1",
     .words = {BOUNDS, "load f32 s[", "shared array \"s\" of 64 elements, index -1",
               "work-item (0, 0, 0) of group ("}},
    {.name = "bounds/misaligned",
     .check = "bounds",
     .text = IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c@\n%v = load f32x4 x[%m]\n"
                 "%e = extract f32 %v, 0\nstore y[%i], %e\n",
     .right = "4",
     .wrong = "2",
     .words = {BOUNDS, "load f32x4 x[", "binding \"x\" of 256 elements, index ", "misaligned"}},
    {.name = "bounds/wide_store_over_the_end",
     .check = "bounds",
     .text = IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c4\n"
                 "%v = pack f32x4 %f1, %f1, %f1, %f1\nstore y[%m], %v\n",
     .right = "",
     .wrong = "",
     .bytes = {0, 1024 - 8, 0},
     .words = {BOUNDS, "(store y[", "binding \"y\" of 254 elements, index 252 to 255",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/copy_source",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "%o = constant u32 @\n%j = add u32 %i, %o\n"
             "async_copy 1 s[%l], x[%j]\nasync_commit\nasync_wait 0\nbarrier\n"
             "%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "1",
     .words = {"copy from out of range", "async_copy 1 s[",
               "binding \"x\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group (3, 0, 0)"}},
    {.name = "bounds/copy_target",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "%o = constant u32 @\n%j = add u32 %l, %o\n"
             "async_copy 1 s[%j], x[%i]\nasync_commit\nasync_wait 0\nbarrier\n"
             "%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "1",
     .words = {BOUNDS, "async_copy 1 s[", "shared array \"s\" of 64 elements, index 64",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/guard_off_by_one",
     .check = "bounds",
     .text = IDS "%n = constant u32 200\n%in = @ bool %i, %n\nstore y[%i], %f1 if %in\n",
     .right = "lt",
     .wrong = "le",
     .bytes = {0, 800, 0},
     .words = {BOUNDS, "(store y[", "binding \"y\" of 200 elements, index 200",
               "work-item (8, 0, 0) of group (3, 0, 0)"}},
    {.name = "bounds/loop_end",
     .check = "bounds",
     .text = IDS "%n = constant u32 @\n%a = var f32 %f1\n%k = for u32 %c0, %n, %c1\n"
                 "  %v = load f32 x[%k]\n  %q = get f32 %a\n  %s = add f32 %q, %v\n  set %a, %s\n"
                 "end\n%t = get f32 %a\nstore y[%i], %t\n",
     .right = "256",
     .wrong = "257",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index 256", "256 times"}},
    {.name = "bounds/index_from_memory",
     .check = "bounds",
     .text = IDS "%t = load u32 z[%i]\n%o = constant u32 @\n%j = add u32 %t, %o\n"
                 "%v = load f32 x[%j]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "255",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index 256", "256 times"}},
};
const size_t sanitize_fault_count = sizeof sanitize_faults / sizeof *sanitize_faults;
