/* How all programs of this folder take time: as `tutti bench` does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Nanoseconds of the clock that all processes of a host share. */
static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median in microseconds; of an even count the mean of the middle two. The times are sorted. */
static double median_us(const int64_t *times, int count) {
    return (times[(count - 1) / 2] + times[count / 2]) / 2e3;
}

/* The start of a line of JSON, to which a program may add. Sorts the times. */
static void print_times(size_t bytes, int64_t *times, int count) {
    qsort(times, count, sizeof *times, compare);
    printf("{\"bytes\": %zu, \"median_us\": %.4f, \"min_us\": %.4f", bytes,
           median_us(times, count), times[0] / 1e3);
}

static void *memory(size_t bytes) {
    void *memory = malloc(bytes + 1);
    if (!memory) {
        fprintf(stderr, "there is no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}
