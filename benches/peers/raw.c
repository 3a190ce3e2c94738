/* Times what a machine can do at best, by the protocol of `tutti bench`, without any library.
 *
 *     raw shm|tcp CORE,CORE,... WARM_UP ITERATIONS BYTES...
 *
 * One process on each core. In each iteration each tells the next one word and hears one from the
 * one before: over shm by a cache line, after which it copies BYTES of its own memory; over tcp by
 * sending it BYTES through a loopback connection, while it receives as many. Prints a line of JSON
 * per size. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

enum { CORES_MAX = 64, PIECE = 256 << 10 };

/* A cache line that one process writes, far enough from the next to be fetched alone. */
typedef struct {
    _Alignas(128) _Atomic uint64_t value;
} Line;

/* What all processes see. A line is written by the process whose number it has. */
typedef struct {
    Line barrier[CORES_MAX], word[CORES_MAX];
    int64_t took[]; /* by process, then by iteration */
} Shared;

typedef struct {
    Shared *shared;
    int me, processes, over_tcp;
    uint64_t barriers, words; /* so far */
    int to_next, from_previous;
    char *from, *into;
} Process;

static void need(int works, const char *what) {
    if (works) return;
    perror(what);
    exit(2);
}

static void await_value(Line *line, uint64_t value) {
    while (atomic_load_explicit(&line->value, memory_order_acquire) < value) continue;
}

static void barrier(Process *p) {
    p->barriers++;
    atomic_store_explicit(&p->shared->barrier[p->me].value, p->barriers, memory_order_release);
    for (int i = 0; i < p->processes; i++) await_value(&p->shared->barrier[i], p->barriers);
}

static void exchange_words(Process *p) {
    p->words++;
    atomic_store_explicit(&p->shared->word[p->me].value, p->words, memory_order_release);
    await_value(&p->shared->word[(p->me + p->processes - 1) % p->processes], p->words);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* What a call on a socket moved; 0 if it could move nothing now. */
static size_t moved(ssize_t result, const char *what) {
    if (result < 0 && errno == EAGAIN) return 0;
    need(result > 0, what);
    return result;
}

static void exchange_bytes(Process *p, size_t bytes) {
    size_t sent = 0, received = 0;
    while (sent < bytes || received < bytes) {
        if (sent < bytes)
            sent += moved(send(p->to_next, p->from + sent, least(bytes - sent, PIECE), MSG_NOSIGNAL), "send");
        if (received < bytes)
            received += moved(recv(p->from_previous, p->into + received, least(bytes - received, PIECE), 0), "recv");
    }
}

static void once(Process *p, size_t bytes) {
    if (p->over_tcp) {
        exchange_bytes(p, bytes);
    } else {
        exchange_words(p);
        memcpy(p->into, p->from, bytes);
    }
}

static void measure(Process *p, size_t bytes, int warm_up, int iterations) {
    for (int i = 0; i < warm_up; i++) barrier(p), once(p, bytes);
    for (int i = 0; i < iterations; i++) {
        barrier(p);
        int64_t enter = now_ns();
        once(p, bytes);
        p->shared->took[p->me * iterations + i] = now_ns() - enter;
    }
    barrier(p);
    if (p->me == 0) {
        int64_t *slowest = p->shared->took;
        for (int i = 0; i < p->processes * iterations; i++)
            if (slowest[i % iterations] < p->shared->took[i]) slowest[i % iterations] = p->shared->took[i];
        print_times(bytes, slowest, iterations);
        printf("}\n");
        fflush(stdout);
    }
    barrier(p);
}

/* Both ends of a loopback connection, neither of which blocks. */
static void connect_ends(int *to, int *from) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    need(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    *to = socket(AF_INET, SOCK_STREAM, 0);
    need(!connect(*to, (struct sockaddr *)&address, length), "connect");
    *from = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    need(*from >= 0 && !fcntl(*to, F_SETFL, O_NONBLOCK), "accept");
    need(!setsockopt(*to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    close(listener);
}

static void pin_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    need(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

int main(int argc, char **argv) {
    int cores[CORES_MAX], to[CORES_MAX], from[CORES_MAX];
    Process p = {0};
    if (argc < 6) {
        fprintf(stderr, "usage: raw shm|tcp CORE,CORE,... WARM_UP ITERATIONS BYTES...\n");
        return 2;
    }
    p.over_tcp = !strcmp(argv[1], "tcp");
    for (char *core = strtok(argv[2], ","); core && p.processes < CORES_MAX; core = strtok(NULL, ","))
        cores[p.processes++] = atoi(core);
    int warm_up = atoi(argv[3]), iterations = atoi(argv[4]);
    size_t shared = sizeof *p.shared + p.processes * iterations * sizeof *p.shared->took, largest = 0;
    p.shared = mmap(NULL, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(p.shared != MAP_FAILED, "mmap");
    for (int i = 0; i < p.processes; i++) connect_ends(&to[i], &from[(i + 1) % p.processes]);
    for (int i = 5; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 10);
        if (bytes > largest) largest = bytes;
    }

    for (int child = 1; child < p.processes && !p.me; child++) {
        int pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0) p.me = child, prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    pin_to(cores[p.me]);
    p.to_next = to[p.me], p.from_previous = from[p.me];
    p.from = memset(memory(largest), 1, largest), p.into = memset(memory(largest), 2, largest);
    for (int i = 5; i < argc; i++) measure(&p, strtoull(argv[i], NULL, 10), warm_up, iterations);
    free(p.from), free(p.into);
    if (p.me == 0)
        while (wait(NULL) > 0) continue;
}
