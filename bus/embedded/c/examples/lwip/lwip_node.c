/* A node on lwIP's raw API: `lwip_node OWN GATEWAY PORT` over plain TCP frames, `lwip_node OWN BROKER PORT tmq` as a
 * client of a TMQ broker. It publishes its uptime once a second, and prints what comes under greenhouse/show.
 * Here lwIP runs on the tap interface $PRECONFIGURED_TAPIF; on a board its driver takes the place of tapif. */
#include "buscoupler_node.h"
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>
#include <netif/tapif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* python -m bus.embedded.tokens greenhouse uptime show */
#define GREENHOUSE 0xB5E7A61Au
#define UPTIME 0x22EA2D02u
#define SHOW 0x1A3537C8u
#define PORT 9943
#define AGAIN_MS 1000

static const uint32_t uptime[] = {GREENHOUSE, UPTIME}, show[] = {GREENHOUSE, SHOW};
static struct tcp_pcb *pcbs[BCN_TMQ_LINKS]; /* by link; for plain frames the first one */
static const uint8_t links[BCN_TMQ_LINKS] = {0, 1, 2, 3};
static struct netif net;
static ip4_addr_t own, other;
static uint16_t port;
static uint8_t buffer[2048], queue[2048], own_address[8], broker[8];
static int is_tmq;
static struct bcn_tcp tcp;
static struct bcn_tmq tmq;

static void on_show(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    (void)context;
    (void)tokens;
    (void)count;
    printf("%.*s\n", (int)size, (const char *)data);
    fflush(stdout);
}

static uint8_t link_of(const void *arg)
{
    return *(const uint8_t *)arg;
}

/* A connection is gone, and its pcb too. */
static void gone(uint8_t link)
{
    pcbs[link] = NULL;
    if (is_tmq) {
        bcn_tmq_closed(&tmq, link, sys_now());
    }
}

static void close_link(void *context, uint8_t link)
{
    struct tcp_pcb *pcb = pcbs[link];
    (void)context;
    pcbs[link] = NULL;
    if (pcb != NULL) {
        tcp_arg(pcb, NULL);
        tcp_recv(pcb, NULL);
        tcp_err(pcb, NULL);
        (void)tcp_close(pcb); /* behind what was written */
    }
}

static void on_error(void *arg, err_t error)
{
    (void)error;
    gone(link_of(arg));
}

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *received, err_t error)
{
    const uint8_t link = link_of(arg);
    struct pbuf *part;
    (void)error;
    if (received == NULL) {
        close_link(NULL, link);
        gone(link);
        return ERR_OK;
    }
    tcp_recved(pcb, received->tot_len);
    for (part = received; part != NULL && pcbs[link] == pcb; part = part->next) {
        if (is_tmq) {
            bcn_tmq_feed(&tmq, link, part->payload, part->len, sys_now());
        } else if (bcn_tcp_feed(&tcp, part->payload, part->len) == BCN_LOST) {
            close_link(NULL, link);
        }
    }
    pbuf_free(received);
    return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error)
{
    (void)pcb;
    (void)error;
    if (is_tmq) {
        bcn_tmq_connected(&tmq, link_of(arg), sys_now());
    } else {
        bcn_tcp_connected(&tcp);
    }
    return ERR_OK;
}

static void hold(struct tcp_pcb *pcb, uint8_t link)
{
    pcbs[link] = pcb;
    tcp_arg(pcb, (void *)&links[link]);
    tcp_recv(pcb, on_received);
    tcp_err(pcb, on_error);
    tcp_nagle_disable(pcb);
}

static int dial(void *context, uint8_t link, const uint8_t *address)
{
    struct tcp_pcb *pcb = tcp_new();
    ip_addr_t ip;
    (void)context;
    if (pcb == NULL) {
        return 1;
    }
    IP_ADDR4(&ip, address[4], address[5], address[6], address[7]);
    hold(pcb, link);
    return tcp_connect(pcb, &ip, (uint16_t)(address[2] << 8 | address[3]), on_connected) != ERR_OK;
}

static uint16_t room(void *context, uint8_t link)
{
    (void)context;
    return pcbs[link] == NULL ? 0 : (uint16_t)LWIP_MIN(tcp_sndbuf(pcbs[link]), 0xFFFF);
}

static int write_link(void *context, uint8_t link, const uint8_t *bytes, uint16_t size)
{
    (void)context;
    if (pcbs[link] == NULL || tcp_write(pcbs[link], bytes, size, TCP_WRITE_FLAG_COPY) != ERR_OK) {
        return 1;
    }
    return tcp_output(pcbs[link]) != ERR_OK;
}

static int write_tcp(void *context, const uint8_t *bytes, uint16_t size)
{
    return write_link(context, 0, bytes, size);
}

static err_t on_accepted(void *arg, struct tcp_pcb *pcb, err_t error)
{
    const int link = error == ERR_OK ? bcn_tmq_accepted(&tmq, sys_now()) : BCN_FULL;
    (void)arg;
    if (link < 0) {
        if (pcb != NULL) {
            tcp_abort(pcb);
        }
        return ERR_ABRT;
    }
    hold(pcb, (uint8_t)link);
    return ERR_OK;
}

static void tick(void *arg)
{
    (void)arg;
    (void)bcn_tmq_tick(&tmq, sys_now());
    sys_timeout(100, tick, NULL);
}

static void each_second(void *arg)
{
    char text[12];
    const uint16_t size = (uint16_t)snprintf(text, sizeof text, "%u", (unsigned)(sys_now() / 1000));
    (void)arg;
    if (is_tmq) {
        (void)bcn_tmq_publish(&tmq, uptime, 2, (const uint8_t *)text, size, sys_now());
    } else if (pcbs[0] == NULL) {
        (void)dial(NULL, 0, broker);
    } else if (pcbs[0]->state == ESTABLISHED
               && bcn_tcp_publish(&tcp, uptime, 2, (const uint8_t *)text, size) == BCN_LOST) {
        close_link(NULL, 0);
    }
    sys_timeout(AGAIN_MS, each_second, NULL);
}

static void set_address(uint8_t *address, const ip4_addr_t *ip, uint16_t number)
{
    const uint8_t head[4] = {0, 2, (uint8_t)(number >> 8), (uint8_t)(number & 255)};
    memcpy(address, head, 4);
    memcpy(address + 4, &ip->addr, 4);
}

static void begin_tmq(void)
{
    static const struct bcn_tmq_driver driver = {dial, room, write_link, close_link};
    struct tcp_pcb *pcb = tcp_new();
    tcp_bind(pcb, IP_ADDR_ANY, PORT);
    tcp_accept(tcp_listen(pcb), on_accepted);
    bcn_tmq_init(&tmq, &driver, NULL, broker, 1, own_address, LWIP_RAND(), buffer, sizeof buffer, queue, sizeof queue);
    (void)bcn_tmq_subscribe(&tmq, show, 2, on_show, NULL);
    (void)bcn_tmq_declare(&tmq, uptime, 2);
    tick(NULL);
}

/* Called by lwIP's thread, in which all of the program runs. */
static void begin(void *arg)
{
    ip4_addr_t mask;
    (void)arg;
    IP4_ADDR(&mask, 255, 255, 255, 0);
    netif_add(&net, &own, &mask, &other, NULL, tapif_init, tcpip_input);
    netif_set_default(&net);
    netif_set_up(&net);
    set_address(own_address, &own, PORT);
    set_address(broker, &other, port);
    if (is_tmq) {
        begin_tmq();
    } else {
        bcn_tcp_init(&tcp, write_tcp, NULL, buffer, sizeof buffer);
        (void)bcn_subscribe(&tcp.node, show, 2, on_show, NULL);
    }
    each_second(NULL);
}

int main(int count, char **words)
{
    if (count < 4 || !ip4addr_aton(words[1], &own) || !ip4addr_aton(words[2], &other)) {
        fprintf(stderr, "use: lwip_node OWN GATEWAY PORT [tmq]\n");
        return 2;
    }
    port = (uint16_t)atoi(words[3]);
    is_tmq = count > 4;
    tcpip_init(begin, NULL);
    for (;;) {
        pause();
    }
}
