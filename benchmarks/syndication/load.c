/* Clients of a syndication broker, as many as a load has, in one thread with one epoll; prints one JSON line.
 *
 * usage: load fanout     PORT FILE SUBSCRIBERS single|batched|RATE WARMUP_S SECONDS PID
 *        load evaluation PORT SECONDS HASTE PID
 *
 * fanout: FILE has MessagePack of untagged clients: a query for each subscriber, a publication that is sent once, and
 * publications that one producer then sends again and again: as fast as the broker reads, one a write or 64 KiB a
 * write; or RATE a second, one a write, each at its own time. Delivered is counted over SECONDS. Loss is counted over
 * the whole run, after what was under way has come; it is that of a load where each subscriber hears everything.
 *
 * evaluation: what the original's authors published (docs/performance.md): 30 tagged subscribers, 360
 * producers with 5 publications a second each, in 10 buckets of 12 rooms; a producer changes its room after 30 to
 * 59 s, divided by HASTE. Producers begin when all subscribers have their first set. A publication has
 * the time when it was due, on a grid of 200 ms, so that each is known.
 */
#include "measure.h"

enum { WRITE = 64 << 10, READ = 256 << 10, CARRY = 64 << 10, EVENTS = 64, BURST_BATCHED = 4, BURST_SINGLE = 64 };
enum { BUCKETS = 10, PARTS = 3, ROOMS = 12, SUBSCRIBERS = BUCKETS * PARTS, PRODUCERS = SUBSCRIBERS * ROOMS, ID = 36 };
static const int64_t TICK = 200000000, SECOND = 1000000000;

struct peer { int fd, closed; size_t carried; uint64_t messages, differences, errors; uint8_t carry[CARRY]; };

typedef void (*heard)(struct peer *, uint32_t who, const uint8_t *, size_t);

/* ---- MessagePack ---- */

static uint64_t number(const uint8_t *p, int bytes) {
    uint64_t n = 0;
    while (bytes--) n = n << 8 | *p++;
    return n;
}

/* What follows the object at p; NULL if it is not whole. */
static const uint8_t *after(const uint8_t *p, const uint8_t *end) {
    static const uint8_t fixed[] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18};
    for (uint64_t left = 1; left; left--) {
        if (p >= end) return NULL;
        uint8_t b = *p;
        if (b < 0x80 || b >= 0xe0) { p++; continue; }
        if (b < 0x90) { left += 2 * (b & 15), p++; continue; }
        if (b < 0xa0) { left += b & 15, p++; continue; }
        if (b < 0xc0) { p += 1 + (b & 31); continue; }
        if (b <= 0xd8 && fixed[b - 0xc0]) { p += fixed[b - 0xc0]; continue; }
        int bytes = b < 0xc7 ? 1 << (b - 0xc4) : b < 0xca ? 1 << (b - 0xc7) : b < 0xdc ? 1 << (b - 0xd9) : 2 << ((b - 0xdc) & 1);
        if (end - p < 1 + bytes) return NULL;
        uint64_t n = number(p + 1, bytes);
        p += 1 + bytes;
        if (b >= 0xdc) left += b < 0xde ? n : 2 * n;
        else p += n + (b >= 0xc7 && b < 0xca);
    }
    return p <= end ? p : NULL;
}

/* ---- peers ---- */

static void receive(struct peer *r, uint32_t who, int tagged, heard hear) {
    static uint8_t area[CARRY + READ];
    if (r->closed) return;
    memcpy(area, r->carry, r->carried);
    ssize_t n = recv(r->fd, area + r->carried, READ, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) { r->closed = 1, close(r->fd); return; }
    const uint8_t *p = area, *end = area + r->carried + n, *next;
    while (p + tagged < end && (next = after(p + tagged, end))) hear(r, who, p, next - p), p = next;
    if (end - p > CARRY) die("a message is too long");
    memcpy(r->carry, p, r->carried = end - p);
}

static void join(int ep, int fd, uint32_t who, uint32_t events) {
    struct epoll_event e = {.events = events, .data.u32 = who};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
}

static void say(int fd, const void *p, size_t n) {
    if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n) die("send");
}

/* ---- one producer, many subscribers ---- */

struct sender { int fd, writable, single; double pause_s, due_s; const uint8_t *cycle; size_t bytes, at; uint32_t count, next; size_t *end; uint64_t messages; };

static void count(struct peer *r, uint32_t who, const uint8_t *p, size_t n) {
    (void)who, (void)n;
    if (*p == 0x93) r->messages++;
    else if (*p == 0x82) r->differences++;
    else r->errors++;
}

static void advance(struct sender *s, size_t n) {
    for (s->at += n; s->next < s->count && s->end[s->next] <= s->at; s->next++) s->messages++;
    if (s->at == s->bytes) s->at = 0, s->next = 0;
}

static void send_burst(struct sender *s) {
    for (int i = 0; i < (s->single ? BURST_SINGLE : BURST_BATCHED) && s->writable; i++) {
        if (s->pause_s && now() < s->due_s) return;
        size_t left = (s->single ? s->end[s->next] : s->bytes) - s->at;
        ssize_t n = send(s->fd, s->cycle + s->at, left < WRITE || s->single ? left : WRITE, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) die("the broker closed the producer");
        if (n < 0) s->writable = 0;
        else advance(s, n), s->due_s += s->pause_s;
    }
}

static uint64_t delivered(const struct peer *r, int peers) {
    uint64_t sum = 0;
    for (int i = 0; i < peers; i++) sum += r[i].messages;
    return sum;
}

static void turn(int ep, struct sender *s, struct peer *r, int wait_ms) {
    struct epoll_event events[EVENTS];
    int n = epoll_wait(ep, events, EVENTS, wait_ms);
    for (int i = 0; i < n; i++) {
        if (events[i].data.u32 == UINT32_MAX) s->writable = 1;
        else receive(&r[events[i].data.u32], events[i].data.u32, 0, count);
    }
}

/* Until each has had so many publications, or nothing came for quiet_s. */
static void drain(int ep, struct sender *s, struct peer *r, int peers, uint64_t each, double quiet_s) {
    double last = now();
    for (uint64_t seen = 0; seen < each * peers && now() - last < quiet_s;) {
        turn(ep, s, r, 10);
        if (seen != delivered(r, peers)) seen = delivered(r, peers), last = now();
    }
}

static uint8_t *whole(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(1 << 24);
    if (!f || !data || !(*bytes = fread(data, 1, 1 << 24, f))) die(path);
    fclose(f);
    return data;
}

static int fanout(char **a) {
    size_t bytes;
    int port = atoi(a[0]), peers = atoi(a[2]), pid = atoi(a[6]), ep = epoll_create1(0);
    double warmup = atof(a[4]), seconds = atof(a[5]), start, t = 0, began = 0, cpu = 0;
    const uint8_t *p = whole(a[1], &bytes), *end = p + bytes, *first = p;
    struct peer *r = calloc(peers, sizeof *r);
    struct sender s = {.single = !!strcmp(a[3], "batched"), .pause_s = atof(a[3]) ? 1 / atof(a[3]) : 0, .writable = 1, .end = malloc(bytes * sizeof(size_t))};
    if (!r || !s.end) die("memory");
    for (int i = 0; i < peers; i++, p = first) {
        if (!(first = after(p, end))) die(a[1]);
        join(ep, r[i].fd = connect_local(port), i, EPOLLIN), say(r[i].fd, p, first - p);
    }
    if (!(s.cycle = p = after(first, end))) die(a[1]);
    s.bytes = end - p;
    while (p < end && (p = after(p, end))) s.end[s.count++] = p - s.cycle;
    for (int i = 0; i < peers; i++)
        for (start = now(); !r[i].differences; turn(ep, &s, r, 10)) if (now() - start > 10) die("a subscriber gets no set");
    join(ep, s.fd = connect_local(port), UINT32_MAX, EPOLLOUT | EPOLLET);
    say(s.fd, first, s.cycle - first);
    drain(ep, &s, r, peers, 1, 3);
    for (int i = 0; i < peers; i++) r[i].messages = r[i].differences = 0;
    uint64_t before = 0, sent = 0;
    s.due_s = now();
    for (start = s.due_s + warmup; !began || t < began + seconds;) {  // a whole window, however late its start was noticed
        send_burst(&s);
        turn(ep, &s, r, s.writable ? 0 : 10);
        t = now();
        if (!began && t >= start) began = t, before = delivered(r, peers), sent = s.messages, cpu = cpu_s(pid);
    }
    uint64_t got = delivered(r, peers) - before, errors = 0, differences = 0;
    sent = s.messages - sent, cpu = cpu_s(pid) - cpu;
    drain(ep, &s, r, peers, s.messages, 1);
    for (int i = 0; i < peers; i++) errors += r[i].errors + r[i].closed, differences += r[i].differences;
    printf("{\"delivered_per_s\": %.1f, \"sent_per_s\": %.1f, \"cpu_us\": %.6f, \"cpu_us_sent\": %.6f, \"core\": %.4f, \"loss\": %.6f, "
           "\"differences\": %llu, \"errors\": %llu}\n", got / (t - began), sent / (t - began), got ? cpu * 1e6 / got : 0,
           sent ? cpu * 1e6 / sent : 0, cpu / (t - began), 1 - (double)delivered(r, peers) / ((double)s.messages * peers),
           (unsigned long long)differences, (unsigned long long)errors);
    return 0;
}

/* ---- the original's evaluation ---- */

/* The value of a publication is its time, with the room in the last bits: the producer may be in another by then. */
enum { ROOM = 15 };
struct producer { int fd, bucket, room, changed; int64_t due, change, last[PARTS]; };

static struct producer producers[PRODUCERS];
static float *us, *late_us;
static size_t heard_count, sent_count, most;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t until_change(double haste) { return (30 + random() % 30) * SECOND / haste; }

static size_t text(uint8_t *to, const char *s) {
    size_t n = strlen(s);
    *to = 0xa0 + n, memcpy(to + 1, s, n);
    return n + 1;
}

static size_t id(uint8_t *to, int number) {
    to[0] = 0xd9, to[1] = ID;
    return sprintf((char *)to + 2, "%08x-cb5a-4c5e-9a01-123456789abc", number) + 2;
}

static size_t publication(uint8_t *to, int number, const struct producer *p, int64_t at) {
    char word[8];
    size_t n = 2;
    memcpy(to, "\0\x83", n);
    n += text(to + n, "UUID"), n += id(to + n, number), n += text(to + n, "Metadata");
    to[n++] = p->changed ? 0x82 : 0x80;
    if (p->changed) {
        sprintf(word, "%d", p->bucket), n += text(to + n, "Bucket"), n += text(to + n, word);
        sprintf(word, "%d", p->room), n += text(to + n, "Room"), n += text(to + n, word);
    }
    n += text(to + n, "Value"), to[n++] = 0xd3;
    put_u64(to + n, (at & ~ROOM) | p->room);
    return n + 8;
}

static void subscribe(int fd, int who) {
    uint8_t to[512] = "\1\x82";
    int room = who / BUCKETS * 4;
    size_t n = 2 + text(to + 2, "UUID");
    n += id(to + n, who), n += text(to + n, "Query"), to[n] = 0xd9;
    to[n + 1] = sprintf((char *)to + n + 2, "Bucket = '%d' and (Room = '%d' or Room = '%d' or Room = '%d' or Room = '%d')",
                        who % BUCKETS, room, room + 1, room + 2, room + 3);
    say(fd, to, n + 2 + to[n + 1]);
}

static void arrived(struct peer *r, uint32_t who, const uint8_t *p, size_t n) {
    if (*p == 2) { r->differences++; return; }
    unsigned number = PRODUCERS;
    if (*p || n < 50 || sscanf((const char *)p + 9, "%8x", &number) != 1 || number >= PRODUCERS) { r->errors++; return; }
    struct producer *from = &producers[number];
    int64_t value, due, *last = &from->last[who / BUCKETS];
    memcpy(&value, p + n - 8, 8), value = __builtin_bswap64(value), due = value & ~ROOM;
    r->errors += due <= *last || (uint32_t)((value & ROOM) / 4 * BUCKETS + from->bucket) != who;
    *last = due, r->messages++;
    if (heard_count < most) us[heard_count++] = (now_ns() - due) / 1e3;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Producers of a subscriber begin one after another, 0 to 100 ms apart. */
static void plan(int64_t start, double haste) {
    for (int who = 0; who < SUBSCRIBERS; who++) {
        int64_t at = start;
        for (int room = 0; room < ROOMS; room++) {
            at += random() % (SECOND / 10);
            producers[who * ROOMS + room] = (struct producer){.fd = -1, .bucket = who % BUCKETS, .room = room, .changed = 1, .due = at, .change = at + TICK + until_change(haste)};
        }
    }
}

/* Connect a producer that begins, or let it publish. Return 1 if its room changed. */
static int act(int number, int port, double haste) {
    struct producer *p = &producers[number];
    uint8_t message[256];
    int changes = 0;
    if (p->fd < 0) { p->fd = connect_local(port), p->due += TICK; return 0; }
    if (p->due >= p->change) p->room = (p->room + 1) % ROOMS, p->change += until_change(haste), changes = p->changed = 1;
    if (sent_count < most) late_us[sent_count++] = (now_ns() - p->due) / 1e3;
    say(p->fd, message, publication(message, number, p, p->due));
    p->changed = 0, p->due += TICK;
    return changes;
}

static void listen_until(int ep, struct peer *r, int64_t end) {
    struct epoll_event events[EVENTS];
    for (int64_t left = end - now_ns(); left > 0; left = end - now_ns()) {
        struct timespec wait = {left / SECOND, left % SECOND};
        int n = epoll_pwait2(ep, events, EVENTS, &wait, NULL);
        for (int i = 0; i < n; i++) receive(&r[events[i].data.u32], events[i].data.u32, 1, arrived);
    }
}

/* Until so much was heard, or nothing for 10 s; and whatever else comes at once. */
static void hear_out(int ep, struct peer *r, uint64_t all) {
    double last = now();
    for (uint64_t seen = 0; seen < all && now() - last < 10;) {
        listen_until(ep, r, now_ns() + SECOND / 100);
        if (seen != delivered(r, SUBSCRIBERS)) seen = delivered(r, SUBSCRIBERS), last = now();
    }
    listen_until(ep, r, now_ns() + SECOND / 10);
}

static int evaluation(char **a) {
    int port = atoi(a[0]), pid = atoi(a[3]), ep = epoll_create1(0), changes = 0;
    double seconds = atof(a[1]), haste = atof(a[2]), cpu, sum = 0;
    struct peer *r = calloc(SUBSCRIBERS, sizeof *r);
    uint64_t got = 0, errors = 0, differences = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    most = PRODUCERS * 5 * (seconds + 1), us = malloc(most * sizeof *us), late_us = malloc(most * sizeof *us);
    if (!r || !us || !late_us) die("memory");
    srandom(262);
    cpu = cpu_s(pid);
    for (int i = 0; i < SUBSCRIBERS; i++) join(ep, r[i].fd = connect_local(port), i, EPOLLIN), subscribe(r[i].fd, i);
    for (int i = 0; i < SUBSCRIBERS; i++)
        for (double begun = now(); !r[i].differences; listen_until(ep, r, now_ns() + SECOND / 100)) if (now() - begun > 10) die("a subscriber gets no set");
    int64_t start = now_ns(), end = start + seconds * SECOND;
    plan(start, haste);
    for (int next = 0;; next = 0) {
        for (int i = 1; i < PRODUCERS; i++) if (producers[i].due < producers[next].due) next = i;
        if (producers[next].due >= end) break;
        listen_until(ep, r, producers[next].due);
        changes += act(next, port, haste);
    }
    cpu = cpu_s(pid) - cpu;
    hear_out(ep, r, sent_count);
    for (int i = 0; i < SUBSCRIBERS; i++) got += r[i].messages, differences += r[i].differences, errors += r[i].errors + r[i].closed;
    if (!heard_count) die("nothing was heard");
    qsort(us, heard_count, sizeof *us, by_value), qsort(late_us, sent_count, sizeof *us, by_value);
    for (size_t i = 0; i < heard_count; i++) sum += us[i];
    printf("{\"mean_us\": %.1f, \"p50_us\": %.1f, \"p95_us\": %.1f, \"p99_us\": %.1f, \"worst_us\": %.1f, \"late_p50_us\": %.1f, \"late_p95_us\": %.1f, \"late_p99_us\": %.1f, \"sent\": %zu, \"delivered\": %llu, "
           "\"changes\": %d, \"differences\": %llu, \"errors\": %llu, \"core\": %.4f}\n", sum / heard_count, us[heard_count / 2],
           us[heard_count * 95 / 100], us[heard_count * 99 / 100], us[heard_count - 1], late_us[sent_count / 2],
           late_us[sent_count * 95 / 100], late_us[sent_count * 99 / 100], sent_count, (unsigned long long)got,
           changes, (unsigned long long)differences, (unsigned long long)errors, cpu / seconds);
    return 0;
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc == 9 && !strcmp(argv[1], "fanout")) return fanout(argv + 2);
    if (argc == 6 && !strcmp(argv[1], "evaluation")) return evaluation(argv + 2);
    return fprintf(stderr, "load: see the head of syndication/load.c\n"), 2;
}
