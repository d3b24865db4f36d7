/* The load generator: one sender, many receivers, one thread, one epoll; prints one JSON line.
 *
 * usage: load throughput PORT sp|ws|nats SIZE RECEIVERS STUCK single|batched WARMUP_S SECONDS PID
 *        load roundtrip  PORT sp|ws|nats SECONDS PID [PORT of the one who answers]
 *        load dialogue   PORT sp|ws|nats STREAM_PER_S IDLE STALLED SECONDS
 *        load idle       PORT sp|ws|nats PEERS         (says READY, waits for end of input)
 * A PORT that begins with / is the path of an ipc:// address.
 * SIZE is a number of bytes, "mixed" (octaves 16..2048 B, each carrying the same bytes) or "uniform".
 *
 * The sender walks a precomputed cycle of messages as fast as the device reads. A body starts with its
 * index in the cycle, so a receiver checks the length of every message and the content of every 64th.
 * STUCK receivers join and never read. Delivered is counted over SECONDS at the good receivers; loss
 * over the whole run, after what was under way has drained. A dialogue asks and answers 100 times a second beside
 * a stream of 64 B messages in batches, IDLE peers, and STALLED ones whose queues are full. `ws` is SP over WebSocket; all its keys are 0, which
 * costs a device no less than others, and lets a receiver compare what comes back.
 */
#include "measure.h"

#include <sys/un.h>

#include "channel.h"

enum { WRITE = 64 << 10, READ = 256 << 10, CYCLE = 256 << 10, CARRY = 4096, BURST_BATCHED = 4, BURST_SINGLE = 64 };
enum { SAMPLE = 64, ROUND_TRIPS = 1 << 20, LINE = 256, MARK = 0x34000201, CONTROL = -2, BROKEN = -1, PARTIAL = 0 };

struct cycle { uint8_t *wire; size_t bytes; uint32_t count, *size; size_t *body, *end; };
struct peer { int fd, closed, marks; size_t skip, carried; uint64_t messages, errors, sampled; uint8_t carry[CARRY]; };

static struct cycle cycle;
static int nats, web, port;
static size_t lead;
static const char *path;
static const char GREETING[] = "\0SP\0\0\x70\0\0";

/* ---- the two protocols ---- */

static size_t web_head(uint8_t *to, uint32_t size) {
    size_t n = 2;
    to[0] = 0x82, to[1] = 0x80 | (size < 126 ? size : size < 65536 ? 126 : 127);
    if (size >= 65536) put_u64(to + n, size), n += 8;
    else if (size >= 126) to[2] = size >> 8, to[3] = size, n += 2;
    memset(to + n, 0, 4);
    return n + 4;
}

static size_t wrap(uint8_t *to, const char *subject, uint32_t index, uint32_t size, size_t *body) {
    size_t head = nats ? (size_t)sprintf((char *)to, "PUB %s %u\r\n", subject, size) : 8 + lead;
    if (web) head = web_head(to, size);
    else if (!nats) to[0] = 1, put_u64(to + lead, size);
    for (uint32_t i = 0; i < size; i++) to[head + i] = (uint8_t)(index * 31 + i * 7);
    memcpy(to + head, &index, 4);
    if (nats) memcpy(to + head + size, "\r\n", 2);
    *body = head;
    return head + size + (nats ? 2 : 0);
}

static inline int head_nats(int fd, const uint8_t *p, size_t n, uint64_t *size) {
    const uint8_t *stop = memchr(p, '\n', n < LINE ? n : LINE);
    if (!stop) return n < LINE ? PARTIAL : BROKEN;
    if (memcmp(p, "MSG ", 4)) {
        if (!memcmp(p, "PING", 4) && send(fd, "PONG\r\n", 6, MSG_NOSIGNAL) < 0) return BROKEN;
        *size = stop + 1 - p;
        return CONTROL;
    }
    const uint8_t *digit = stop - 2;
    while (digit[-1] != ' ') digit--;
    for (*size = 0; digit < stop - 1; digit++) *size = *size * 10 + (*digit - '0');
    return (int)(stop + 1 - p);
}

static inline int head_web(const uint8_t *p, size_t n, uint64_t *size) {
    size_t wide = n < 2 ? 0 : p[1] == 126 ? 2 : p[1] == 127 ? 8 : 0;
    if (n < 2 + wide) return PARTIAL;
    if (p[0] != 0x82 || p[1] > 127) return BROKEN;
    *size = wide ? 0 : p[1];
    for (size_t i = 0; i < wide; i++) *size = *size << 8 | p[2 + i];
    return (int)(2 + wide);
}

/* Bytes of the head of the message at p, and its size; or PARTIAL, BROKEN, CONTROL (size = bytes to pass). */
static inline int head(int fd, const uint8_t *p, size_t n, uint64_t *size) {
    if (nats) return n < 6 ? PARTIAL : head_nats(fd, p, n, size);
    if (web) return head_web(p, n, size);
    if (n < 8 + lead) return PARTIAL;
    memcpy(size, p + lead, 8);
    *size = __builtin_bswap64(*size);
    return 8 + (int)lead;
}

static void check(struct peer *r, const uint8_t *body, size_t have, uint64_t size) {
    uint32_t index;
    memcpy(&index, body, 4);
    if (index == MARK) { r->marks++; return; }
    if (index >= cycle.count || cycle.size[index] != size) { r->errors++; return; }
    if (r->messages % SAMPLE) return;
    r->sampled++;
    if (memcmp(body, cycle.wire + cycle.body[index], have < size ? have : size)) r->errors++;
}

static void feed(struct peer *r, const uint8_t *p, size_t n) {
    uint64_t size;
    while (n) {
        if (r->skip) {
            size_t k = r->skip < n ? r->skip : n;
            p += k, n -= k, r->skip -= k;
            if (!r->skip) r->messages++;
            continue;
        }
        int h = head(r->fd, p, n, &size);
        if (h == BROKEN) { r->errors++, r->closed = 1; return; }
        if (h == CONTROL) { p += size, n -= size; continue; }
        if (h == PARTIAL || n < (size_t)h + 4) { memcpy(r->carry, p, n), r->carried = n; return; }
        check(r, p + h, n - h, size);
        p += h, n -= h, r->skip = size + (nats ? 2 : 0);
    }
}

static void receive(struct peer *r) {
    static uint8_t area[CARRY + READ];
    if (r->closed) return;
    size_t carried = r->carried;
    memcpy(area, r->carry, carried);
    ssize_t n = wire_recv(r->fd, area + carried, READ, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) { r->closed = 1, close(r->fd); return; }
    r->carried = 0;
    feed(r, area, carried + n);
    if (wire_pending(r->fd)) receive(r);
}

/* ---- joining ---- */

static int connect_path(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 5};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static void upgrade(int fd) {
    static const char ask[] = "GET /bus HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: bus.sp.nanomsg.org\r\n\r\n";
    char reply[4096] = "";
    if (wire_send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) != sizeof ask - 1) die("upgrade");
    for (size_t have = 0; have < 4 || memcmp(reply + have - 4, "\r\n\r\n", 4); have++)  // and not a byte of a frame
        if (have >= sizeof reply - 1 || wire_recv(fd, reply + have, 1, 0) != 1) die("upgrade");
    if (memcmp(reply, "HTTP/1.1 101", 12)) die("upgrade refused");
}

static int dial(const char *subject) {
    char text[LINE], reply[4096] = "";
    int fd = path ? connect_path(path) : connect_local(port);
    secure(fd);
    if (web) return upgrade(fd), fd;
    if (!nats) {
        if (wire_send(fd, GREETING, 8, MSG_NOSIGNAL) != 8 || wire_recv(fd, reply, 8, MSG_WAITALL) != 8) die("handshake");
        if (memcmp(reply, GREETING, 8)) die("handshake");
        return fd;
    }
    int n = sprintf(text, "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}\r\n");
    if (*subject) n += sprintf(text + n, "SUB %s 1\r\n", subject);
    n += sprintf(text + n, "PING\r\n");
    if (send(fd, text, n, MSG_NOSIGNAL) != n) die("handshake");
    for (size_t have = 0; !strstr(reply, "PONG\r\n"); have += n)
        if (have >= sizeof reply - 1 || (n = recv(fd, reply + have, sizeof reply - 1 - have, 0)) <= 0) die("handshake");
    return fd;
}

static void build_cycle(const char *kind) {
    int mixed = !strcmp(kind, "mixed"), uniform = !strcmp(kind, "uniform"), fixed = atoi(kind);
    uint32_t n = mixed ? 255 * 16 : uniform ? 512 : CYCLE / (fixed + 8) + 1;
    size_t total = 0;
    cycle.size = calloc(n, sizeof *cycle.size), cycle.body = calloc(n, sizeof(size_t)), cycle.end = calloc(n, sizeof(size_t));
    for (uint32_t i = 0; i < n; i++) {
        /* 128 of 255 are 16 B, 64 are 32 B ... 1 is 2048 B: every octave carries as many bytes. */
        cycle.size[i] = mixed ? 16u << __builtin_clz((i % 255 + 1) << 24) : uniform ? 16 + i * 2032 / (n - 1) : (uint32_t)fixed;
        total += cycle.size[i] + 32;
    }
    srandom(9942);
    for (uint32_t i = n - 1; i > 0 && !fixed; i--) {
        uint32_t j = random() % (i + 1), t = cycle.size[i];
        cycle.size[i] = cycle.size[j], cycle.size[j] = t;
    }
    cycle.wire = malloc(total), cycle.count = n;
    for (uint32_t i = 0; i < n; i++) {
        size_t start = cycle.bytes, body;
        cycle.bytes += wrap(cycle.wire + start, "b", i, cycle.size[i], &body);
        cycle.body[i] = start + body, cycle.end[i] = cycle.bytes;
    }
}

/* ---- throughput ---- */

struct sender { int fd, writable, single; size_t at; uint32_t next; uint64_t messages; };

static void advance(struct sender *s, size_t n) {
    for (s->at += n; s->next < cycle.count && cycle.end[s->next] <= s->at; s->next++) s->messages++;
    if (s->at == cycle.bytes) s->at = 0, s->next = 0;
}

static void send_burst(struct sender *s, int burst) {
    for (int i = 0; i < burst && s->writable; i++) {
        size_t left = (s->single ? cycle.end[s->next] : cycle.bytes) - s->at;
        ssize_t n = wire_send(s->fd, cycle.wire + s->at, left < WRITE || s->single ? left : WRITE, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) die("the device closed the sender");
        if (n < 0) s->writable = 0;
        else advance(s, n);
    }
}

static uint64_t delivered(const struct peer *r, int count) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) sum += r[i].messages;
    return sum;
}

static int turn(int ep, struct sender *s, struct peer *r, int count, int wait_ms) {
    struct epoll_event events[64];
    int n = epoll_wait(ep, events, 64, wait_ms);
    for (int i = 0; i < n; i++) {
        uint32_t who = events[i].data.u32;
        if ((int)who < count) { receive(&r[who]); continue; }
        if (events[i].events & EPOLLOUT) s->writable = 1;
        if (events[i].events & EPOLLIN) receive(&r[count]);
    }
    return n;
}

/* Until all that was sent is here, or nothing came for quiet_s. */
static void drain(int ep, struct sender *s, struct peer *r, int count, double quiet_s, double limit_s) {
    double last = now(), end = last + limit_s;
    for (uint64_t seen = 0; seen < s->messages * count && now() < end && now() - last < quiet_s;) {
        turn(ep, s, r, count, 10);
        if (seen != delivered(r, count)) seen = delivered(r, count), last = now();
    }
}

/* A device may join a peer a little after it shook hands: send until everyone has heard something. */
static void settle(int ep, struct sender *s, struct peer *r, int count) {
    double end = now() + 10;
    for (int heard = 0; heard < count;) {
        if (now() > end) die("no message comes through");
        if (s->writable) send_burst(s, 1);
        for (int i = 0; i < 10; i++) turn(ep, s, r, count, 2);
        heard = 0;
        for (int i = 0; i < count; i++) heard += r[i].messages > 0;
    }
    while (s->at) send_burst(s, 1), turn(ep, s, r, count, 1);
    drain(ep, s, r, count, 0.1, 3);
    s->messages = 0;
    for (int i = 0; i < count; i++) r[i].messages = 0;
}

static void join(int ep, int fd, uint32_t who, uint32_t events) {
    struct epoll_event e = {.events = events, .data.u32 = who};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
}

static int throughput(char **a) {
    int count = atoi(a[1]), stuck = atoi(a[2]), pid = atoi(a[6]), ep = epoll_create1(0);
    double warmup = atof(a[4]), seconds = atof(a[5]);
    struct peer *r = calloc(count + 1, sizeof *r);
    struct sender s = {.single = !strcmp(a[3], "single"), .writable = 1};
    build_cycle(a[0]);
    for (int i = 0; i < count; i++) join(ep, r[i].fd = dial("b"), i, EPOLLIN);
    for (int i = 0; i < stuck; i++) dial("b");
    join(ep, s.fd = r[count].fd = dial(""), count, EPOLLIN | EPOLLOUT | EPOLLET);
    settle(ep, &s, r, count);
    uint64_t before = 0;
    double start = now() + warmup, t = now(), cpu = 0, began = 0;
    while (!began || t < began + seconds) {  // a whole window, however late its start was noticed
        send_burst(&s, s.single ? BURST_SINGLE : BURST_BATCHED);
        turn(ep, &s, r, count, s.writable ? 0 : 10);
        t = now();
        if (!began && t >= start) began = t, before = delivered(r, count), cpu = cpu_s(pid);
    }
    uint64_t got = delivered(r, count) - before, errors = r[count].messages, sampled = 0;
    cpu = cpu_s(pid) - cpu;
    drain(ep, &s, r, count, 1, 5);
    int closed = 0;
    for (int i = 0; i < count; i++) errors += r[i].errors, sampled += r[i].sampled, closed += r[i].closed;
    double due = (double)s.messages * count, all = delivered(r, count);
    printf("{\"delivered_per_s\": %.1f, \"cpu_us\": %.6f, \"loss\": %.6f, \"errors\": %llu, \"closed\": %d, "
           "\"sampled\": %llu, \"sent\": %llu, \"delivered\": %.0f}\n", got / (t - began), got ? cpu * 1e6 / got : 0,
           due ? 1 - all / due : 0, (unsigned long long)errors, closed, (unsigned long long)sampled,
           (unsigned long long)s.messages, all);
    return 0;
}

/* ---- round trip: A sends, B answers, one under way ---- */

static int pass(int from, int to, const uint8_t *wire, size_t n, size_t back) {
    uint8_t got[LINE];
    if (wire_send(from, wire, n, MSG_NOSIGNAL) != (ssize_t)n) die("send");
    for (size_t have = 0; have < back;) {
        ssize_t k = wire_recv(to, got + have, back - have, 0);
        if (k < 0 && errno == EAGAIN) return 0;
        if (k <= 0) die("the device closed a peer");
        have += k;
        if (nats && have >= 6 && !memcmp(got, "PING\r\n", 6)) {
            send(to, "PONG\r\n", 6, MSG_NOSIGNAL);
            memmove(got, got + 6, have -= 6);
        }
    }
    size_t tail = 64 + (nats ? 2 : 0);
    if (memcmp(got + back - tail, wire + n - tail, tail)) die("another message came back");
    return 1;
}

static void greet(int from, int to, const uint8_t *wire, size_t n, size_t back) {
    uint8_t rest[READ];
    struct timeval brief = {.tv_usec = 200000}, usual = {.tv_sec = 5};
    setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief);
    for (int i = 0; !pass(from, to, wire, n, back); i++)
        if (i == 50) die("no message comes through");
    while (wire_recv(to, rest, sizeof rest, 0) > 0) continue;
    setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &usual, sizeof usual);
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_times(float *us, int count, double cpu) {
    if (!count) die("no round trip was made");
    qsort(us, count, sizeof *us, by_value);
    printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"round_trips\": %d, \"cpu_us\": %.4f, \"errors\": 0}\n",
           us[count / 2], us[(size_t)count * 99 / 100], us[(size_t)count * 999 / 1000], count, cpu * 1e6 / (2.0 * count));
}

/* A frame that bridges take: two tokens, and data that differ each time. */
static size_t wrap_frame(uint8_t *to, const char *subject, uint32_t token, size_t *body) {
    size_t n = wrap(to, subject, MARK, 64, body);
    memcpy(to + *body, "\1\2\0\64\0\0\3\350", 8);
    token = htonl(token);
    return memcpy(to + *body + 8, &token, 4), n;
}

static int roundtrip(char **a, const char *other) {
    static float us[ROUND_TRIPS];
    uint8_t ask[LINE], answer[LINE];
    size_t body, at, n = wrap_frame(ask, "b", 1, &body);
    size_t back = nats ? strlen("MSG b 1 64\r\n") + 66 : web ? 66 : 72 + lead;
    int pid = atoi(a[1]), here = dial("a"), count = 0;
    if (other) port = atoi(other);
    int there = dial("b");
    wrap_frame(answer, "a", 2, &at);
    greet(here, there, ask, n, back);
    greet(there, here, answer, n, back);
    double end = 0, cpu = 0;
    for (int i = -1000; count < ROUND_TRIPS && (i <= 0 || now() < end); i++) {
        if (i == 0) cpu = cpu_s(pid), end = now() + atof(a[0]);
        memcpy(ask + body + 12, &i, 4), memcpy(answer + at + 12, &i, 4);
        double start = now();
        if (!pass(here, there, ask, n, back) || !pass(there, here, answer, n, back)) die("a message was lost");
        if (i >= 0) us[count++] = (now() - start) * 1e6;
    }
    print_times(us, count, cpu_s(pid) - cpu);
    return 0;
}

/* ---- a dialogue beside others ---- */

static void stream(double per_s) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = dial(""), width = cycle.end[0];
    uint64_t sent = 0, most = cycle.bytes / width;
    for (double start = now();;) {
        uint64_t due = (now() - start) * per_s - sent;
        for (sent += due; due; due -= due < most ? due : most)
            if (wire_send(fd, cycle.wire, (due < most ? due : most) * width, MSG_NOSIGNAL) < 0) _exit(1);
        usleep(500);
    }
}

static void stall(int count) {
    int fd = dial("");
    for (int i = 0; i < count; i++) dial("b");
    usleep(200000);
    for (int i = 0; i < 96 && count; i++)  // 24 MiB: more than any queue holds
        if (wire_send(fd, cycle.wire, cycle.bytes, MSG_NOSIGNAL) < 0) die("stall");
    usleep(200000);
    close(fd);
}

static void say(struct peer *p, const uint8_t *wire, size_t n) {
    if (wire_send(p->fd, wire, n, MSG_NOSIGNAL) != (ssize_t)n) die("send");
}

static int dialogue(char **a) {
    static float us[ROUND_TRIPS];
    struct sender none = {0};
    uint8_t ask[LINE], answer[LINE];
    size_t body, n;
    int count = 0, idle = atoi(a[1]), ep = epoll_create1(0);
    struct peer *r = calloc(3, sizeof *r);
    build_cycle("64");
    stall(atoi(a[2]));
    for (int i = 0; i < idle; i++) dial("b");
    join(ep, r[0].fd = dial("a"), 0, EPOLLIN);
    join(ep, r[1].fd = dial("b"), 1, EPOLLIN);
    n = wrap_frame(ask, "b", 1, &body), wrap_frame(answer, "a", 2, &body);
    if (atof(a[0]) && !fork()) stream(atof(a[0]));
    double start = now() + 0.2, end = start + atof(a[3]), asked = 0;
    for (double due = start; now() < end || asked;) {
        if (!asked && now() >= due) asked = now(), due += 0.01, say(&r[0], ask, n);
        turn(ep, &none, r, 2, asked ? 1 : (int)((due - now()) * 1000));
        if (r[1].marks) r[1].marks = 0, say(&r[1], answer, n);
        if (r[0].marks) us[count++] = (now() - asked) * 1e6, r[0].marks = 0, asked = 0;
        else if (asked && now() > asked + 1) us[count++] = 1e6, asked = 0;  // lost, or as good as lost
    }
    print_times(us, count, 0);
    return 0;
}

static int idle(char **a) {
    int count = atoi(a[0]);
    for (int i = 0; i < count; i++) dial("b");
    puts("READY");
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 5) return fprintf(stderr, "load: see the head of load.c\n"), 2;
    path = *argv[2] == '/' ? argv[2] : NULL, lead = path != NULL;
    port = atoi(argv[2]), nats = !strcmp(argv[3], "nats"), web = !strcmp(argv[3], "ws");
    if (!strcmp(argv[1], "throughput") && argc == 11) return throughput(argv + 4);
    if (!strcmp(argv[1], "roundtrip") && (argc == 6 || argc == 7)) return roundtrip(argv + 4, argv[6]);
    if (!strcmp(argv[1], "dialogue") && argc == 8) return dialogue(argv + 4);
    if (!strcmp(argv[1], "idle") && argc == 5) return idle(argv + 4);
    return fprintf(stderr, "load: see the head of load.c\n"), 2;
}
