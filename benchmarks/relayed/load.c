/* The load on a gateway between a line and TCP: paced frames into one end, what comes out of the other; one JSON line.
 *
 * usage: load IN OUT FRAMES IN_BYTES OUT_BYTES RATE TICK_S SECONDS PID
 * IN and OUT are fd:NUMBER (inherited), cn:NUMBER for a socket of CAN frames, which return to their sender with the
 * mark of benchmarks/can_pairs.py, tcp:PORT, or sp:PORT of 127.0.0.1. FRAMES is a file of frames of IN_BYTES, which
 * are written in turn, RATE of them a second: each alone when it is due, or all that are due in one write at each
 * TICK_S. Each must come out as OUT_BYTES, 1 for CAN frames, and is there when its last byte is; the time counts from the write.
 * PID is the gateway, whose processor time is told for the measured time.
 */
#include "measure.h"
#include <poll.h>

enum { READ = 64 << 10 };
#define WARMUP_S 0.5
#define LIMIT_S 10.0
#define QUIET_S 0.2
#define LOST_S 2.0

static uint8_t area[READ];
static int whole_reads;  // each read is a frame, and counts as one byte
static int whole_writes;  // each write is a frame

/* Seconds of processor time of a process and all its threads, exact: the ticks of /proc are 10 ms. */
static double clock_s(int pid) {
    struct timespec t;
    clockid_t id;
    if (clock_getcpuclockid(pid, &id) || clock_gettime(id, &t)) return 0;
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_end(const char *text) {
    int number = atoi(strchr(text, ':') + 1), fd = number;
    if (strncmp(text, "fd", 2) && strncmp(text, "cn", 2)) fd = connect_local(number);
    if (!strncmp(text, "sp", 2)) {
        uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x70, 0, 0}, answer[8];
        if (write(fd, hello, 8) != 8 || recv(fd, answer, 8, MSG_WAITALL) != 8) die("the handshake");
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

static size_t read_some(int fd) {
    ssize_t n = read(fd, area, sizeof area);
    if (n < 0 && errno != EAGAIN && errno != EINTR) die("read");
    if (n < 6 || !whole_reads) return n > 0 ? n : 0;
    area[5] |= 0x80;
    if (write(fd, area, n) < 0) die("write");
    return 1;
}

/* Wait until `fd` is readable, or `full` is writable if it is one. Return whether `fd` may be readable. */
static int wait_for(int fd, int full, double seconds) {
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = full, .events = POLLOUT}};
    if (seconds < 0) seconds = 0;
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
    return ppoll(p, 2, &t, NULL) > 0 && p[0].revents;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double part(const double *sorted, size_t n, double share) { return n ? sorted[(size_t)(share * (n - 1))] * 1e6 : 0; }

/* Send a frame until one comes out; then wait until nothing comes any more. */
static void settle(int in, int out, const uint8_t *frame, size_t bytes) {
    double end = now() + LIMIT_S;
    for (;;) {
        if (write(in, frame, bytes) < 0 && errno != EAGAIN) die("write");
        if (wait_for(out, -1, 0.2) && read_some(out)) break;
        if (now() > end) errno = ETIMEDOUT, die("nothing comes out");
    }
    while (wait_for(out, -1, QUIET_S)) read_some(out);
}

int main(int argc, char **argv) {
    if (argc != 10) errno = EINVAL, die("usage");
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1000);
    int in = open_end(argv[1]), out = open_end(argv[2]), pid = atoi(argv[9]);
    size_t in_bytes = atoi(argv[4]), out_bytes = atoi(argv[5]);
    whole_writes = !strncmp(argv[1], "cn", 2), whole_reads = !strncmp(argv[2], "cn", 2);
    double rate = atof(argv[6]), tick = atof(argv[7]), seconds = atof(argv[8]);
    FILE *f = fopen(argv[3], "r");
    uint8_t *frames = malloc(1 << 20);
    size_t cycle = f ? fread(frames, 1, 1 << 20, f) / in_bytes : 0, warm = (size_t)(WARMUP_S * rate);
    size_t total = warm + (size_t)(seconds * rate), sent = 0, begun = 0, came = 0, whole = 0, late = 0;
    if (!cycle) die("no frames");
    double *due = calloc(total, sizeof *due), *took = calloc(total, sizeof *took), cpu = 0, spent = 0;
    settle(in, out, frames, in_bytes);
    double start = now(), end = start + total / rate + LIMIT_S, next = start, last = start;
    if (!tick) tick = 1 / rate;
    while (whole < total && now() < end && (sent < total || now() < last + LOST_S)) {
        double t = now();
        int full = -1;
        if (sent < total && t >= next) {
            size_t at = (sent + 1) % cycle, some = (size_t)((t - start) * rate + 1e-6) + 1 - sent;
            if (some > cycle - at) some = cycle - at;
            if (some > total - sent) some = total - sent;
            if (whole_writes && some) some = 1;
            ssize_t n = some ? write(in, frames + at * in_bytes + begun, some * in_bytes - begun) : 0;
            if (n < 0 && errno != EAGAIN) die("write");
            size_t done = (begun + (n > 0 ? n : 0)) / in_bytes;
            if (sent <= warm && sent + done > warm) cpu = clock_s(pid);
            if (n < 0 || done < some) full = in, late++;
            for (begun = (begun + (n > 0 ? n : 0)) % in_bytes; done; done--) due[sent++] = now();
            int behind = whole_writes && sent < (size_t)((t - start) * rate + 1e-6) + 1;
            if (full < 0 && !behind) while (next <= t) next += tick;
        }
        if (wait_for(out, full, sent == total || full >= 0 ? 0.01 : next - now())) {
            came += read_some(out), last = t = now();
            for (; whole < sent && (whole + 1) * out_bytes <= came; whole++) took[whole] = t - due[whole];
        }
        if (sent == total && !spent) spent = clock_s(pid) - cpu;
    }
    size_t n = whole > warm ? whole - warm : 0;
    double busy = spent / (seconds);
    if (n) qsort(took + warm, n, sizeof *took, compare);
    printf("{\"cores\": %.6f, \"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"lost\": %ld, \"blocked\": %zu}\n", busy,
           part(took + warm, n, .5), part(took + warm, n, .99), part(took + warm, n, .999), (long)total - (long)whole, late);
    return 0;
}
