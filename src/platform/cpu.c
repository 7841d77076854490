/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "platform/cpu.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mha__cpu features;
static pthread_once_t features_once = PTHREAD_ONCE_INIT;

static void detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
    features.neon = true; /* part of the architecture */
#endif
}

const struct mha__cpu *mha__cpu_features(void)
{
    pthread_once(&features_once, detect);
    return &features;
}

static int32_t affinity_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (int32_t)CPU_COUNT(&set);
    }
    /* More CPUs than a cpu_set_t holds: the system's count serves, it is capped at 64 anyway. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT32_MAX ? (int32_t)online : 1;
}

/* Reads a small file whole; false when it is not there. */
static bool read_text(const char *path, char *text, size_t cap)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, cap - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* "quota period" or "max period" in microseconds -> CPUs, rounded up; 0 = no limit. */
static int32_t quota_of(const char *text)
{
    char *rest = NULL;
    long long quota = strtoll(text, &rest, 10);
    long long period = rest != text ? strtoll(rest, NULL, 10) : 0;
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long cpus = quota / period + (quota % period != 0);
    return cpus < INT32_MAX ? (int32_t)cpus : 0;
}

/* The tightest quota on the way from this process's cgroup (version 2) up to the root; 0 = none. */
static int32_t quota_v2(void)
{
    char own[1024];
    if (!read_text("/proc/self/cgroup", own, sizeof own)) {
        return 0;
    }
    char *group = strstr(own, "0::");
    if (!group) {
        return 0;
    }
    group += 3;
    group[strcspn(group, "\n")] = '\0';
    int32_t tightest = 0;
    for (;;) {
        char path[1200];
        char text[64];
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        int32_t quota = read_text(path, text, sizeof text) ? quota_of(text) : 0;
        if (quota > 0 && (tightest == 0 || quota < tightest)) {
            tightest = quota;
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return tightest;
        }
        *slash = '\0';
    }
}

static int32_t quota_v1(void)
{
    char text[64];
    char quota[24];
    if (!read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota)) {
        return 0;
    }
    quota[strcspn(quota, "\n")] = '\0';
    char period[24];
    if (!read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) {
        return 0;
    }
    (void)snprintf(text, sizeof text, "%s %s", quota, period);
    return quota_of(text);
}

static int32_t cpu_quota;
static pthread_once_t quota_once = PTHREAD_ONCE_INIT;

static void read_quota(void)
{
    cpu_quota = quota_v2();
    if (cpu_quota == 0) {
        cpu_quota = quota_v1();
    }
}

int32_t mha__cpu_usable(void)
{
    pthread_once(&quota_once, read_quota);
    const int32_t quota = cpu_quota;
    int32_t cpus = affinity_count();
    if (quota > 0 && quota < cpus) {
        cpus = quota;
    }
    return cpus > 0 ? cpus : 1;
}
