/* Times a collective of an MPI library and checks its result, by the protocol of `tutti bench`.
 *
 *     peer COLLECTIVE WARM_UP ITERATIONS BYTES...
 *
 * BYTES is one rank's data, of all blocks together where there is one for each rank. Prints the
 * library's name as a line of JSON, then a line per size. In place, except all_to_all. */
#include <mpi.h>
#include <string.h>

#include "timing.h"

typedef struct {
    int rank, ranks;
    int count, block;    /* elements of the data, and of one block of it */
    float *from, *into;  /* `from` is used by all_to_all alone */
} Case;

typedef struct {
    const char *name;
    void (*run)(const Case *);
    /* Whether this element of `into` is right once it has run. */
    int (*right)(const Case *, int index);
} Collective;

/* Whole numbers so small that every sum is exact, different on each rank. */
static float value(int rank, int64_t index) {
    return (float)((index * 7 + rank * 13) % 101 - 50);
}

static float sum(const Case *c, int64_t index) {
    float sum = 0;
    for (int rank = 0; rank < c->ranks; rank++) sum += value(rank, index);
    return sum;
}

static void all_reduce(const Case *c) {
    MPI_Allreduce(MPI_IN_PLACE, c->into, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static int is_sum(const Case *c, int index) { return c->into[index] == sum(c, index); }

static void reduce(const Case *c) {
    const void *from = c->rank == 0 ? MPI_IN_PLACE : c->into;
    MPI_Reduce(from, c->into, c->count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static int is_sum_at_root(const Case *c, int index) { return c->rank != 0 || is_sum(c, index); }

static void broadcast(const Case *c) { MPI_Bcast(c->into, c->count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static int is_of_root(const Case *c, int index) { return c->into[index] == value(0, index); }

static void all_gather(const Case *c) {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, c->into, c->block, MPI_FLOAT, MPI_COMM_WORLD);
}
static int is_of_owner(const Case *c, int index) {
    return c->into[index] == value(index / c->block, index);
}

static void reduce_scatter(const Case *c) {
    MPI_Reduce_scatter_block(MPI_IN_PLACE, c->into, c->block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static int is_own_sum(const Case *c, int index) {
    int64_t first = (int64_t)c->rank * c->block;
    return index >= c->block || c->into[index] == sum(c, first + index);
}

static void all_to_all(const Case *c) {
    MPI_Alltoall(c->from, c->block, MPI_FLOAT, c->into, c->block, MPI_FLOAT, MPI_COMM_WORLD);
}
static int is_of_sender(const Case *c, int index) {
    int64_t first = (int64_t)c->rank * c->block;
    return c->into[index] == value(index / c->block, first + index % c->block);
}

static void barrier(const Case *c) { (void)c, MPI_Barrier(MPI_COMM_WORLD); }
/* It has no elements; the clock tells whether it works. */
static int is_anything(const Case *c, int index) { return (void)c, (void)index, 1; }

static const Collective COLLECTIVES[] = {
    {"all_reduce", all_reduce, is_sum},
    {"reduce", reduce, is_sum_at_root},
    {"broadcast", broadcast, is_of_root},
    {"all_gather", all_gather, is_of_owner},
    {"reduce_scatter", reduce_scatter, is_own_sum},
    {"all_to_all", all_to_all, is_of_sender},
    {"barrier", barrier, is_anything},
};

/* What the rank contributes; `into` of all_to_all has nothing right in it. */
static void fill(const Case *c) {
    for (int i = 0; i < c->count; i++) {
        c->into[i] = value(c->rank, i);
        if (c->from) c->from[i] = value(c->rank, i), c->into[i] = -1000;
    }
}

/* Iterations in which a rank had left before another had entered. */
static int early_exits(const int64_t *enter, const int64_t *leave, int iterations) {
    int64_t *last = memory(iterations * sizeof *last), *first = memory(iterations * sizeof *first);
    MPI_Reduce(enter, last, iterations, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(leave, first, iterations, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    int rank, early = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < iterations; i++) early += first[i] < last[i];
    free(last), free(first);
    return early;
}

static void measure(const Collective *collective, const Case *c, int warm_up, int iterations) {
    int64_t *enter = memory(iterations * sizeof *enter), *leave = memory(iterations * sizeof *leave);
    int64_t *took = memory(iterations * sizeof *took), *slowest = memory(iterations * sizeof *slowest);
    fill(c);
    for (int i = 0; i < warm_up; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        collective->run(c);
    }
    for (int i = 0; i < iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        enter[i] = now_ns();
        collective->run(c);
        leave[i] = now_ns();
    }
    for (int i = 0; i < iterations; i++) took[i] = leave[i] - enter[i];
    MPI_Reduce(took, slowest, iterations, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);

    fill(c);
    collective->run(c);
    int64_t wrong = 0, all_wrong = 0;
    for (int i = 0; i < c->count; i++) wrong += !collective->right(c, i);
    if (collective->run == barrier) wrong += early_exits(enter, leave, iterations);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (c->rank == 0) {
        print_times(c->count * sizeof(float), slowest, iterations);
        printf(", \"wrong\": %lld}\n", (long long)all_wrong);
        fflush(stdout);
    }
    free(enter), free(leave), free(took), free(slowest);
}

/* The first line of the library's name, without what JSON would need escaped. */
static void print_library(void) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(name, &length);
    name[strcspn(name, "\n")] = 0;
    for (char *at = name; *at; at++)
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = ' ';
    printf("{\"library\": \"%s\"}\n", name);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const Collective *collective = NULL;
    for (size_t i = 0; argc > 4 && i < sizeof COLLECTIVES / sizeof *COLLECTIVES; i++)
        if (!strcmp(argv[1], COLLECTIVES[i].name)) collective = &COLLECTIVES[i];
    if (!collective) {
        fprintf(stderr, "usage: peer COLLECTIVE WARM_UP ITERATIONS BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Case c = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);
    if (c.rank == 0) print_library();

    size_t largest = 0;
    for (int i = 4; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 10);
        if (bytes > largest) largest = bytes;
    }
    c.into = memory(largest);
    if (collective->run == all_to_all) c.from = memory(largest);
    for (int i = 4; i < argc; i++) {
        c.count = strtoull(argv[i], NULL, 10) / sizeof(float);
        c.block = c.count / c.ranks;
        measure(collective, &c, atoi(argv[2]), atoi(argv[3]));
    }
    free(c.from), free(c.into);
    MPI_Finalize();
}
