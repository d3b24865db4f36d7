/* A node in a program on Linux: `linux_tcp HOST PORT` publishes greenhouse/uptime, and prints greenhouse/show.
 * The gateway: tcp: {host: "0.0.0.0", port: 9944, mode: listen} */
#define _POSIX_C_SOURCE 200809L
#include "buscoupler_node.h"
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GREENHOUSE 0xB5E7A61Au /* python -m bus.embedded.tokens greenhouse uptime show */
#define UPTIME 0x22EA2D02u
#define SHOW 0x1A3537C8u

static const uint32_t uptime[] = {GREENHOUSE, UPTIME}, show[] = {GREENHOUSE, SHOW};

static int to_gateway(void *context, const uint8_t *bytes, uint16_t size)
{
    return send(*(const int *)context, bytes, size, MSG_NOSIGNAL) == size ? 0 : 1;
}

static void on_show(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    (void)context;
    (void)tokens;
    (void)count;
    (void)printf("%.*s\n", (int)size, (const char *)data);
    (void)fflush(stdout);
}

/* Whether a line leads to itself: who dials a port of this machine at which nobody listens may get that port. */
static int leads_to_itself(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr_storage own;
    struct sockaddr_storage other;
    socklen_t own_size = sizeof own;
    socklen_t other_size = sizeof other;
    (void)memset(&own, 0, sizeof own);
    (void)memset(&other, 0, sizeof other);
    if (getsockname(fd, (struct sockaddr *)&own, &own_size) != 0
        || getpeername(fd, (struct sockaddr *)&other, &other_size) != 0) {
        return 0;
    }
    if (own_size != other_size || memcmp(&own, &other, own_size) != 0) {
        return 0;
    }
    /* The port is free at once for who is to listen there. */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return 1;
}

static int dial(const char *host, const char *port)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const struct addrinfo *one;
    int fd = -1;
    if (getaddrinfo(host, port, &wanted, &found) != 0) {
        return -1;
    }
    for (one = found; one != NULL && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, SOCK_STREAM, 0);
        if (fd >= 0 && (connect(fd, one->ai_addr, one->ai_addrlen) != 0 || leads_to_itself(fd))) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Read what came before the connection ended: the other end may have closed it, and sending has failed first. */
static void read_rest(struct bcn_tcp *tcp, int fd)
{
    uint8_t bytes[512];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        (void)bcn_tcp_feed(tcp, bytes, (uint16_t)got);
    }
}

/* Serve one connection until it ends. */
static void serve(struct bcn_tcp *tcp, int fd, time_t began)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint8_t bytes[512];
    time_t told = 0;
    for (;;) {
        const time_t now = time(NULL);
        if (now != told) {
            char text[24];
            const int size = snprintf(text, sizeof text, "%ld", (long)(now - began));
            told = now;
            if (bcn_tcp_publish(tcp, uptime, 2, (const uint8_t *)text, (uint16_t)size) != BCN_OK) {
                read_rest(tcp, fd);
                return;
            }
        }
        if (poll(&ready, 1, 100) > 0) {
            const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
            if (got <= 0 || bcn_tcp_feed(tcp, bytes, (uint16_t)got) != BCN_OK) {
                return;
            }
        }
    }
}

int main(int count, char **words)
{
    static uint8_t buffer[1024];
    const time_t began = time(NULL);
    struct bcn_tcp tcp;
    int fd = -1;
    if (count != 3) {
        (void)fprintf(stderr, "usage: %s HOST PORT\n", words[0]);
        return 2;
    }
    bcn_tcp_init(&tcp, to_gateway, &fd, buffer, sizeof buffer);
    (void)bcn_subscribe(&tcp.node, show, 2, on_show, NULL);
    for (;;) {
        fd = dial(words[1], words[2]);
        if (fd >= 0) {
            bcn_tcp_connected(&tcp);
            serve(&tcp, fd, began);
            (void)close(fd);
        }
        (void)sleep(1);
    }
}
