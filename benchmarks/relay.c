/* The limit: a relay that copies bytes from each peer to all others and looks at nothing.
 *
 * It says the SP handshake blindly, skips the 8 bytes of the other side's, and forwards chunks as
 * read, so framing survives only while one peer sends at a time. What a peer does not take is held
 * up to QUEUE bytes; while one holds more than half of that, nothing more is read. A peer that took
 * nothing for STUCK_MS is written off: bytes for it are discarded from then on.
 *
 * usage: relay PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PEERS = 20000, CHUNK = 64 << 10, QUEUE = 1 << 20, STUCK_MS = 100, EVENTS = 256 };

struct peer {
    int open, greeted, written_off;
    uint8_t *queue;
    size_t start, length;
    int64_t moved_ms;
};

static struct peer peers[PEERS];
static int ep, top, full;
static uint8_t chunk[CHUNK];

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int is_full(const struct peer *p) { return p->length > QUEUE / 2; }

static void drop(int fd) {
    struct peer *p = &peers[fd];
    full -= is_full(p);
    free(p->queue);
    memset(p, 0, sizeof *p);
    close(fd);
}

static void watch(int fd, uint32_t events) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
}

static void flush(int fd) {
    struct peer *p = &peers[fd];
    int was_full = is_full(p);
    while (p->length) {
        ssize_t n = send(fd, p->queue + p->start, p->length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;
        p->start += n, p->length -= n, p->moved_ms = now_ms();
    }
    if (!p->length) p->start = 0, watch(fd, EPOLLIN);
    full += is_full(p) - was_full;
}

static void hold(int fd, const uint8_t *data, size_t n) {
    struct peer *p = &peers[fd];
    if (!p->queue) p->queue = malloc(QUEUE);
    if (!p->queue || p->length + n > QUEUE) { p->written_off = 1; return; }
    if (!p->length) p->moved_ms = now_ms(), watch(fd, EPOLLIN | EPOLLOUT);
    if (p->start + p->length + n > QUEUE) memmove(p->queue, p->queue + p->start, p->length), p->start = 0;
    int was_full = is_full(p);
    memcpy(p->queue + p->start + p->length, data, n);
    p->length += n;
    full += is_full(p) - was_full;
}

static void pass(int fd, const uint8_t *data, size_t n) {
    struct peer *p = &peers[fd];
    if (p->written_off) return;
    if (!p->length) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) data += sent, n -= sent;
    }
    if (n) hold(fd, data, n);
}

static void receive(int fd) {
    struct peer *p = &peers[fd];
    ssize_t n = recv(fd, chunk, CHUNK, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) { drop(fd); return; }
    size_t skip = p->greeted < 8 ? 8 - p->greeted : 0;
    if (skip > (size_t)n) skip = n;
    p->greeted += skip;
    if (skip == (size_t)n) return;
    for (int to = 0; to <= top; to++)
        if (to != fd && peers[to].open) pass(to, chunk + skip, n - skip);
}

static void greet(int listener) {
    int fd = accept(listener, NULL, NULL), on = 1;
    if (fd < 0) return;
    if (fd >= PEERS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    peers[fd].open = 1;
    top = fd > top ? fd : top;
    send(fd, "\0SP\0\0\x70\0\0", 8, MSG_NOSIGNAL | MSG_DONTWAIT);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

static void wait_for_room(void) {
    static struct pollfd waiting[PEERS];
    int count = 0;
    for (int fd = 0; fd <= top; fd++)
        if (peers[fd].length) waiting[count++] = (struct pollfd){.fd = fd, .events = POLLOUT};
    poll(waiting, count, 10);
    int64_t now = now_ms();
    for (int i = 0; i < count; i++) {
        struct peer *p = &peers[waiting[i].fd];
        if (waiting[i].revents) flush(waiting[i].fd);
        if (!is_full(p) || now - p->moved_ms < STUCK_MS) continue;
        p->written_off = 1, p->length = 0, full--;
        watch(waiting[i].fd, EPOLLIN);
    }
}

static void serve(int listener) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(ep, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        while (full) wait_for_room();
        if (fd == listener) { greet(listener); continue; }
        if (!peers[fd].open) continue;
        if (events[i].events & EPOLLOUT) flush(fd);
        if (events[i].events & ~EPOLLOUT) receive(fd);
    }
}

int main(int argc, char **argv) {
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 4096)) return perror("relay"), 1;
    ep = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
    for (;;) serve(listener);
}
