/* provoke.c: the table of cases that provoke findings. */
#include "case/provoke.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* `always`: whatever the seed is, and for all types of the pattern. */
static const struct {
    const char *pattern;
    unsigned check;
    bool always;
} marks[] = {
    {"ir/div(type=[iu]*", PROVOKE_MATH, true},
    {"ir/rem(type=[iu]*", PROVOKE_MATH, true},
    {"ir/sh[lr](*", PROVOKE_MATH, true},
    {"ir/constants(opcode=div,type=[iu]*", PROVOKE_MATH, true},
    {"ir/constants(opcode=rem,type=[iu]*", PROVOKE_MATH, true},
    {"ir/constants(opcode=sh[lr],*", PROVOKE_MATH, true},
    {"ir/cast(from=f*,to=[iu]*", PROVOKE_MATH, true},
    {"ir/cast_twice(*", PROVOKE_MATH, false},
    {"ir/constants(opcode=cast,*", PROVOKE_MATH, false},
    {"ir/pairs(type=[iu]*,first=sh[lr])", PROVOKE_MATH, true},
    {"ir/pairs(*", PROVOKE_MATH, false},
    {"ir/index(jumping,*", PROVOKE_MATH, true}, /* steps back as unsigned numbers that wrap twice */
    {"ops/div(type=[iu]*", PROVOKE_MATH, true},
    {"ops/rem(type=[iu]*", PROVOKE_MATH, true},
    {"ops/sh[lr](*", PROVOKE_MATH, true},
    {"ops/cast(from=*f*,to=[iu]*", PROVOKE_MATH, true},

    {"ir/add(type=f*", PROVOKE_NAN, true},
    {"ir/sub(type=f*", PROVOKE_NAN, true},
    {"ir/mul(type=f*", PROVOKE_NAN, true},
    {"ir/div(type=f*", PROVOKE_NAN, true},
    {"ir/rem(type=f*", PROVOKE_NAN, true},
    {"ir/fma(*", PROVOKE_NAN, true},
    {"ir/sqrt(*", PROVOKE_NAN, true},
    {"ir/rsqrt(*", PROVOKE_NAN, true},
    {"ir/exp*(*", PROVOKE_NAN, true},
    {"ir/log*(*", PROVOKE_NAN, true},
    {"ir/pow(*", PROVOKE_NAN, true},
    {"ir/constants(opcode=*,type=f*", PROVOKE_NAN, false},
    {"ir/constants(opcode=narrow,*", PROVOKE_NAN, false},
    {"ir/constants(opcode=cast,from=f64)", PROVOKE_NAN, true},
    {"ir/cast_twice(from=f64)", PROVOKE_NAN, true},
    {"ir/pairs(type=f*", PROVOKE_NAN, false},
    {"ir/inverse(*", PROVOKE_NAN, true},
    {"ir/narrow_used(to=f16)", PROVOKE_NAN, true},
    {"ir/narrow_used(*", PROVOKE_NAN, false},
    {"ir/narrow(from=f32,to=*f*", PROVOKE_NAN, true},
    {"ir/cast(from=f64,to=f32,*", PROVOKE_NAN, true},
    {"ir/store(type=f16,*", PROVOKE_NAN, true},
    {"ir/store(type=f8_e4m3,*", PROVOKE_NAN, true},
    {"ops/every(function=square,*", PROVOKE_NAN, true},
    {"ops/every(function=*sqrt,*", PROVOKE_NAN, true},
    {"ops/every(function=reciprocal,*", PROVOKE_NAN, true},
    {"ops/every(function=exp*", PROVOKE_NAN, true},
    {"ops/every(function=log*", PROVOKE_NAN, true},
    {"ops/every(function=tan,*", PROVOKE_NAN, false},
    {"ops/every(function=a[sc]*", PROVOKE_NAN, true},
    {"ops/every(function=*sinh,*", PROVOKE_NAN, true},
    {"ops/every(function=*cosh,*", PROVOKE_NAN, true},
    {"ops/square(type=*f*", PROVOKE_NAN, true},
    {"ops/sqrt(*", PROVOKE_NAN, true},
    {"ops/rsqrt(*", PROVOKE_NAN, true},
    {"ops/reciprocal(*", PROVOKE_NAN, true},
    {"ops/exp*(type=*", PROVOKE_NAN, true},
    {"ops/log(*", PROVOKE_NAN, true},
    {"ops/log10(*", PROVOKE_NAN, true},
    {"ops/log1p(*", PROVOKE_NAN, true},
    {"ops/log2(*", PROVOKE_NAN, true},
    {"ops/asin(*", PROVOKE_NAN, true},
    {"ops/acos(*", PROVOKE_NAN, true},
    {"ops/sinh(*", PROVOKE_NAN, true},
    {"ops/cosh(*", PROVOKE_NAN, true},
    {"ops/add(type=f16,*", PROVOKE_NAN, true},
    {"ops/add(type=f8_e4m3,*", PROVOKE_NAN, true},
    {"ops/sub(type=f16,*", PROVOKE_NAN, true},
    {"ops/sub(type=f8_e4m3,*", PROVOKE_NAN, true},
    {"ops/mul(type=*f*", PROVOKE_NAN, true},
    {"ops/div(type=*f*", PROVOKE_NAN, true},
    {"ops/rem(type=*f*", PROVOKE_NAN, true},
    {"ops/pow(*", PROVOKE_NAN, true},
    {"ops/cast(from=f64,to=f32,*", PROVOKE_NAN, true},
    {"ops/cast(from=*,to=*f*", PROVOKE_NAN, false},
    {"ops/sum(type=f8_e4m3,*", PROVOKE_NAN, false},
    {"gemm(type=f8_e4m3,*", PROVOKE_NAN, false},
    {"ops/statistics(special)", PROVOKE_NAN, true},
    {"ops/complex(*", PROVOKE_NAN, false},
    {"ops/complex_pairs(f=div,*", PROVOKE_NAN, true},
    {"ops/complex_special(*", PROVOKE_NAN, true},
    {"ops/array_program(type=f16,*", PROVOKE_NAN, false},
};

provoke_mark provoke_mark_of(const char *name)
{
    provoke_mark all = {0, 0};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (fnmatch(marks[i].pattern, name, 0) == 0) {
            all.may |= marks[i].check;
            all.must |= marks[i].always ? marks[i].check : 0;
        }
    }
    return all;
}

unsigned provoke_checks_on(void)
{
    const char *variable = getenv("HAL_SANITIZE");
    unsigned checks = 0;
    while (variable && *variable) {
        const size_t length = strcspn(variable, ", ");
        checks |= length == 4 && strncmp(variable, "math", 4) == 0 ? PROVOKE_MATH : 0u;
        checks |= length == 3 && strncmp(variable, "nan", 3) == 0 ? PROVOKE_NAN : 0u;
        variable += length + (variable[length] != 0);
    }
    return checks;
}

unsigned provoke_check_of(const char *line)
{
    static const struct {
        const char *begin;
        unsigned check;
    } faults[] = {{"sanitize: division by zero", PROVOKE_MATH},
                  {"sanitize: quotient of the smallest", PROVOKE_MATH},
                  {"sanitize: shift by", PROVOKE_MATH},
                  {"sanitize: conversion of a float", PROVOKE_MATH},
                  {"sanitize: index arithmetic", PROVOKE_MATH},
                  {"sanitize: NaN or infinity", PROVOKE_NAN},
                  {"sanitize: store of a finite number", PROVOKE_NAN}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (strncmp(line, faults[i].begin, strlen(faults[i].begin)) == 0) {
            return faults[i].check;
        }
    }
    return 0;
}

bool provoke_is_sanitized(void)
{
    const char *variable = getenv("HAL_SANITIZE");
    return variable && variable[0] != 0;
}
