/* The load on a bridge: frames into one side, the other side's receiver, one thread, one epoll; one JSON line.
 *
 * usage: load INTAKE sp|zmtp OUTLET trunk|plain|zmtp|multicast|multicast-plain SIZE outside|inside
 *                    single|batched WARMUP_S SECONDS PID
 * INTAKE and OUTLET are ports of 127.0.0.1; a multicast OUTLET is a port of the group 239.255.77.4 on the
 * loopback interface. SIZE is a frame's bytes, or "mixed" (octaves 16..2048 B, each carrying the same bytes).
 *
 * The sender walks a precomputed cycle of TMQ frames as fast as the bridge reads. Their tokens are (1000, n)
 * with 50 values of n in no order, of which 5 must not come out: they are under 2000 ("outside"), or just
 * denied ("inside"). The receiver looks at all that comes: its size, its content by the index after the
 * tokens, and on trunks the envelope, whose sequence numbers show each frame that is missing; of the
 * CRC-32 of datagrams it computes every 16th. After its line it waits for end of input, still connected.
 */
#include "measure.h"

enum { WRITE = 64 << 10, READ = 256 << 10, CYCLE = 4 << 20, CARRY = 4096, BURST_BATCHED = 4, BURST_SINGLE = 64 };
enum { PREFIX = 1000, OTHER = 2000, PATTERNS = 50, REFUSED = 45, FRAME_MIN = 16, ENVELOPE = 12, HOPS = 8 };
enum { DATAGRAMS = 64, DATAGRAM = 2048, CRC_EVERY = 16, RECEIVE_BUFFER = 32 << 20 };
#define GROUP "239.255.77.4"
#define QUIET_S 2.0
#define LIMIT_S 15.0

struct cycle { uint8_t *wire, *admitted; size_t bytes, *body, *end; uint32_t count, last, *size; };
struct sender { int fd, writable, single; size_t at; uint32_t next; uint64_t messages, admitted; };
struct receiver {
    int fd, closed, enveloped, begun;
    size_t carried;
    uint64_t messages, errors, missing, datagrams, overflow;
    uint32_t origin, sequence, last;
    uint8_t area[CARRY + READ];
};

static struct cycle cycle;
static struct receiver receiver;
static int zmtp, inside;
static uint32_t crc_table[256];

static void put_u32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static uint32_t get_u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }

/* ---- what is sent ---- */

static size_t wrap(uint8_t *to, uint32_t index, uint32_t size, uint32_t pattern, size_t *body) {
    size_t head = !zmtp ? 8 : size < 256 ? 2 : 9;
    if (!zmtp) put_u64(to, size);
    else if (head == 2) to[0] = 0, to[1] = (uint8_t)size;
    else to[0] = 2, put_u64(to + 1, size);
    uint8_t *frame = to + head;
    for (uint32_t i = 0; i < size; i++) frame[i] = (uint8_t)(index * 31 + i * 7);
    put_u32(frame, 1u << 24 | 2 << 16 | (size - 12));  // type 1, two tokens, data
    put_u32(frame + 4, pattern >= REFUSED && !inside ? OTHER : PREFIX);
    put_u32(frame + 8, pattern);
    memcpy(frame + 12, &index, 4);
    *body = head;
    return head + size;
}

static void build_cycle(const char *kind) {
    int mixed = !strcmp(kind, "mixed"), fixed = atoi(kind);
    uint32_t n = mixed ? 255 * 250 : CYCLE / (fixed + 8) / PATTERNS * PATTERNS;
    if (!mixed && (fixed < FRAME_MIN || fixed > 2048)) die("the size must be 16 to 2048");
    uint32_t *pattern = calloc(n, sizeof *pattern);
    cycle.size = calloc(n, sizeof *cycle.size), cycle.admitted = calloc(n, 1), cycle.count = n;
    cycle.body = calloc(n, sizeof(size_t)), cycle.end = calloc(n, sizeof(size_t));
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        cycle.size[i] = mixed ? 16u << __builtin_clz((i % 255 + 1) << 24) : (uint32_t)fixed;
        pattern[i] = i % PATTERNS;
        total += cycle.size[i] + 9;
    }
    srandom(9942);
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = random() % (i + 1), k = random() % (i + 1), t = cycle.size[i];
        cycle.size[i] = cycle.size[j], cycle.size[j] = t;
        t = pattern[i], pattern[i] = pattern[k], pattern[k] = t;
    }
    cycle.wire = malloc(total);
    for (uint32_t i = 0; i < n; i++) {
        size_t start = cycle.bytes, body;
        cycle.bytes += wrap(cycle.wire + start, i, cycle.size[i], pattern[i], &body);
        cycle.body[i] = start + body, cycle.end[i] = cycle.bytes, cycle.admitted[i] = pattern[i] < REFUSED;
        if (cycle.admitted[i]) cycle.last = i;
    }
}

static void advance(struct sender *s, size_t n) {
    for (s->at += n; s->next < cycle.count && cycle.end[s->next] <= s->at; s->next++)
        s->messages++, s->admitted += cycle.admitted[s->next];
    if (s->at == cycle.bytes) s->at = 0, s->next = 0;
}

static void send_burst(struct sender *s, int burst) {
    for (int i = 0; i < burst && s->writable; i++) {
        size_t left = (s->single ? cycle.end[s->next] : cycle.bytes) - s->at;
        ssize_t n = send(s->fd, cycle.wire + s->at, left < WRITE || s->single ? left : WRITE, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) die("the bridge closed the sender");
        if (n < 0) s->writable = 0;
        else advance(s, n);
    }
}

/* ---- what comes ---- */

static int open_envelope(struct receiver *r, const uint8_t *p, size_t size) {
    uint32_t sequence = get_u32(p + 8);
    size_t inner = (p[2] & 0x0F) << 8 | p[3];
    if (p[0] != 0xE1 || !p[1] || p[1] > HOPS || p[2] < 0xF0 || inner != size - ENVELOPE) return 0;
    if (r->begun && get_u32(p + 4) != r->origin) return 0;
    if (r->begun) r->missing += sequence - r->sequence - 1;
    r->begun = 1, r->origin = get_u32(p + 4), r->sequence = sequence;
    return 1;
}

static void take(struct receiver *r, const uint8_t *p, size_t size) {
    uint32_t index;
    r->messages++;
    if (r->enveloped) {
        if (size < ENVELOPE + FRAME_MIN || !open_envelope(r, p, size)) { r->errors++; return; }
        p += ENVELOPE, size -= ENVELOPE;
    }
    if (size < FRAME_MIN) { r->errors++; return; }
    memcpy(&index, p + 12, 4);
    if (index >= cycle.count || !cycle.admitted[index] || cycle.size[index] != size) { r->errors++; return; }
    if (memcmp(p, cycle.wire + cycle.body[index], size)) r->errors++;
    r->last = index;
}

/* Bytes of the head of the message at p, and its size; 0 where that is not there yet. */
static size_t head(const uint8_t *p, size_t n, uint64_t *size) {
    size_t at = zmtp, bytes = zmtp && n && !(p[0] & 2) ? 1 : 8;
    if (n < at + bytes) return 0;
    for (*size = 0; at < (size_t)zmtp + bytes; at++) *size = *size << 8 | p[at];
    return at;
}

static size_t feed(struct receiver *r, const uint8_t *p, size_t n) {
    uint64_t size;
    size_t used = 0, h;
    while ((h = head(p + used, n - used, &size)) && !r->closed) {
        if (size > CARRY - 9) { r->errors++, r->closed = 1; break; }
        if (n - used < h + size) break;
        if (!zmtp || !(p[used] & 4)) take(r, p + used + h, size);
        used += h + size;
    }
    return used;
}

/* Whether there may be more. */
static int receive_stream(struct receiver *r) {
    ssize_t n = recv(r->fd, r->area + r->carried, READ, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) { r->closed = 1, close(r->fd); return 0; }
    size_t have = r->carried + n, used = feed(r, r->area, have);
    memmove(r->area, r->area + used, r->carried = have - used);
    return n == READ && !r->closed;
}

static uint32_t crc32(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    while (n--) c = crc_table[(c ^ *p++) & 0xFF] ^ c >> 8;
    return ~c;
}

static void open_datagram(struct receiver *r, const uint8_t *p, size_t n) {
    if (n < 8 || (r->datagrams++ % CRC_EVERY == 0 && crc32(p, n) != 0x2144DF1C)) { r->errors++; return; }
    for (size_t at = 0, end = n - 4, skip = r->enveloped ? ENVELOPE : 0, size; at < end; at += size) {
        const uint8_t *frame = p + at + skip;
        if (end - at < skip + 4) { r->errors++; return; }
        size = skip + 4 + 4 * frame[1] + (frame[2] << 8 | frame[3]);
        if (size > end - at) { r->errors++; return; }
        take(r, p + at, size);
    }
}

static int receive_datagrams(struct receiver *r) {
    static uint8_t data[DATAGRAMS][DATAGRAM], control[DATAGRAMS][CMSG_SPACE(sizeof(uint32_t))];
    static struct mmsghdr messages[DATAGRAMS];
    static struct iovec vectors[DATAGRAMS];
    for (int i = 0; i < DATAGRAMS; i++) {
        vectors[i] = (struct iovec){data[i], DATAGRAM};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1,
                                              .msg_control = control[i], .msg_controllen = sizeof control[i]};
    }
    int n = recvmmsg(r->fd, messages, DATAGRAMS, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&messages[i].msg_hdr);
        uint32_t overflow = 0;
        if (c && c->cmsg_type == SO_RXQ_OVFL) memcpy(&overflow, CMSG_DATA(c), 4), r->overflow = overflow;
        open_datagram(r, data[i], messages[i].msg_len);
    }
    return n == DATAGRAMS;
}

/* ---- joining ---- */

static void exchange(int fd, const void *out, size_t n, void *in, size_t back) {
    if (send(fd, out, n, MSG_NOSIGNAL) != (ssize_t)n || recv(fd, in, back, MSG_WAITALL) != (ssize_t)back) die("handshake");
}

static int dial_sp(int port) {
    static const char greeting[] = "\0SP\0\0\x70\0\0";
    char reply[8];
    int fd = connect_local(port);
    exchange(fd, greeting, 8, reply, 8);
    if (memcmp(reply, greeting, 8)) die("handshake");
    return fd;
}

/* ZMTP 3.0, mechanism NULL: greetings of 64 bytes, then a READY from each side (rfc.zeromq.org/spec/23). */
static int dial_zmtp(int port, const char *type) {
    uint8_t greeting[64] = "\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL", reply[256], ready[64] = "\4\0\5READY\xbSocket-Type\0\0\0\3";
    int fd = connect_local(port);
    size_t n = 24;
    exchange(fd, greeting, 64, reply, 64);
    if (reply[0] != 0xFF || reply[10] < 3) die("handshake");
    memcpy(ready + n, type, 3);
    ready[1] = (uint8_t)(n + 3 - 2);
    exchange(fd, ready, n + 3, reply, 2);
    if (reply[0] != 4 || recv(fd, reply + 2, reply[1], MSG_WAITALL) != reply[1]) die("handshake");
    return fd;
}

/* What a message must begin with: a frame's first four bytes, then the tokens. Sizes that vary have no such thing. */
static void subscribe(int fd) {
    for (uint32_t i = 0; i < (inside ? REFUSED : 1); i++) {
        uint8_t text[15] = {0, inside ? 13 : 9, 1};
        memcpy(text + 3, cycle.wire + cycle.body[0], 4);
        put_u32(text + 7, PREFIX), put_u32(text + 11, i);
        if (send(fd, text, 2 + text[1], MSG_NOSIGNAL) != 2 + text[1]) die("handshake");
    }
}

static int join_group(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct ip_mreq request = {.imr_interface.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, bytes = RECEIVE_BUFFER, fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_aton(GROUP, &a.sin_addr);
    request.imr_multiaddr = a.sin_addr;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (bind(fd, (struct sockaddr *)&a, sizeof a)) die("bind");
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request)) die("join the group");
    for (uint32_t i = 0, c; i < 256; crc_table[i++] = c) {
        c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320 ^ c >> 1 : c >> 1;
    }
    return fd;
}

/* ---- the measurement ---- */

static int datagrams;

static void turn(int ep, struct sender *s, int wait_ms) {
    static uint8_t rest[READ];
    struct epoll_event events[4];
    int n = epoll_wait(ep, events, 4, wait_ms);
    for (int i = 0; i < n; i++) {
        int more = events[i].data.u32 && !receiver.closed;
        while (more) more = datagrams ? receive_datagrams(&receiver) : receive_stream(&receiver);
        if (events[i].data.u32) continue;
        if (events[i].events & EPOLLOUT) s->writable = 1;
        while (events[i].events & EPOLLIN && recv(s->fd, rest, sizeof rest, MSG_DONTWAIT) > 0) continue;
    }
}

/* Until all that is due is here, or nothing came for quiet_s. */
static void drain(int ep, struct sender *s, double quiet_s) {
    double last = now(), end = last + LIMIT_S;
    for (uint64_t seen = 0; seen < s->admitted && now() < end && now() - last < quiet_s;) {
        turn(ep, s, 10);
        if (seen != receiver.messages) seen = receiver.messages, last = now();
    }
}

/* A bridge may join a peer a little after it shook hands: send until the receiver has heard something. Then
 * what is under way must not count: it has all come when the last of the cycle has, and no more after it. */
static void settle(int ep, struct sender *s) {
    for (double end = now() + 10; !receiver.messages;) {
        if (now() > end) die("no frame comes through");
        if (s->writable) send_burst(s, 1);
        for (int i = 0; i < 10; i++) turn(ep, s, 2);
    }
    while (s->at) {
        for (int i = 0; s->at && s->writable && i < (s->single ? BURST_SINGLE : BURST_BATCHED); i++) send_burst(s, 1);
        turn(ep, s, s->writable ? 0 : 10);
    }
    for (double end = now() + LIMIT_S; receiver.last != cycle.last && now() < end;) turn(ep, s, 10);
    drain(ep, s, QUIET_S / 4);
    s->messages = s->admitted = receiver.messages = 0;
}

static void join(int ep, int fd, uint32_t who, uint32_t events) {
    struct epoll_event e = {.events = events, .data.u32 = who};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
}

static int measure(struct sender *s, double warmup, double seconds, int pid) {
    int ep = epoll_create1(0);
    join(ep, receiver.fd, 1, EPOLLIN);
    join(ep, s->fd, 0, EPOLLIN | EPOLLOUT | EPOLLET);
    settle(ep, s);
    double start = now() + warmup, t = now(), cpu = 0, own = 0, began = 0;
    uint64_t in = 0, out = 0;
    while (!began || t < began + seconds) {
        send_burst(s, s->single ? BURST_SINGLE : BURST_BATCHED);
        turn(ep, s, s->writable ? 0 : 10);
        t = now();
        if (!began && t >= start) began = t, in = s->messages, out = receiver.messages, cpu = cpu_s(pid), own = cpu_s(getpid());
    }
    in = s->messages - in, out = receiver.messages - out, cpu = cpu_s(pid) - cpu, own = cpu_s(getpid()) - own;
    double took = t - began;
    drain(ep, s, QUIET_S);
    printf("{\"in_per_s\": %.1f, \"out_per_s\": %.1f, \"cpu_us\": %.6f, \"core\": %.4f, \"load_core\": %.4f, "
           "\"loss\": %.6f, \"errors\": %llu, \"closed\": %d, \"missing\": %llu, \"overflow\": %llu, "
           "\"sent\": %llu, \"admitted\": %llu, \"received\": %llu}\n",
           in / took, out / took, in ? cpu * 1e6 / in : 0, cpu / took, own / took,
           s->admitted ? 1 - (double)receiver.messages / s->admitted : 0, (unsigned long long)receiver.errors, receiver.closed,
           (unsigned long long)receiver.missing, (unsigned long long)receiver.overflow, (unsigned long long)s->messages,
           (unsigned long long)s->admitted, (unsigned long long)receiver.messages);
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 11) return fprintf(stderr, "load: see the head of bridges/load.c\n"), 2;
    const char *kind = argv[4];
    int intake = atoi(argv[1]), outlet = atoi(argv[3]);
    zmtp = !strcmp(argv[2], "zmtp"), inside = !strcmp(argv[6], "inside"), datagrams = !strncmp(kind, "multicast", 9);
    receiver.enveloped = !strcmp(kind, "trunk") || !strcmp(kind, "multicast");
    build_cycle(argv[5]);
    receiver.fd = datagrams ? join_group(outlet) : zmtp ? dial_zmtp(outlet, "SUB") : dial_sp(outlet);
    if (zmtp && !datagrams) subscribe(receiver.fd);
    struct sender s = {.fd = zmtp ? dial_zmtp(intake, "PUB") : dial_sp(intake), .single = !strcmp(argv[7], "single"), .writable = 1};
    return measure(&s, atof(argv[8]), atof(argv[9]), atoi(argv[10]));
}
