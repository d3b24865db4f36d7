/* A node on uIP 1.0, over plain TCP frames: `uip_node TAP OWN GATEWAY PORT`. It publishes its uptime once a second, and
 * prints what comes under greenhouse/show. Here uIP runs on a tap interface, in `main`; on a board its driver takes the
 * place of that, and the rest stays. */
#include "buscoupler_node.h"
#include "uip.h"
#include "uip_arp.h"
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* python -m bus.embedded.tokens greenhouse uptime show */
#define GREENHOUSE 0xB5E7A61Au
#define UPTIME 0x22EA2D02u
#define SHOW 0x1A3537C8u
#define SECOND_MS 1000u
#define ETHERNET ((struct uip_eth_hdr *)&uip_buf[0])

static const uint32_t uptime[] = {GREENHOUSE, UPTIME}, show[] = {GREENHOUSE, SHOW};
static struct bcn_tcp tcp;
static uint8_t buffer[256];
/* uIP keeps nothing that it sends: what it asks for again is still here. The first `flying` bytes are on their way. */
static uint8_t out[256];
static uint16_t used, flying;
static struct uip_conn *connection; /* NULL: there is none */
static uint32_t due_ms;

static uint32_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_sec * SECOND_MS + (uint32_t)(now.tv_nsec / 1000000);
}

static void on_show(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    (void)context;
    (void)tokens;
    (void)count;
    printf("%.*s\n", (int)size, (const char *)data);
    fflush(stdout);
}

static int to_gateway(void *context, const uint8_t *bytes, uint16_t size)
{
    (void)context;
    if (size > sizeof out - used) {
        return 1;
    }
    memcpy(out + used, bytes, size);
    used = (uint16_t)(used + size);
    return 0;
}

static int publish_each_second(void)
{
    char text[12];
    uint16_t size;
    if (now_ms() - due_ms > UINT32_MAX / 2) {
        return BCN_OK;
    }
    due_ms = now_ms() + SECOND_MS;
    size = (uint16_t)snprintf(text, sizeof text, "%u", (unsigned)(now_ms() / SECOND_MS));
    return bcn_tcp_publish(&tcp, uptime, 2, (const uint8_t *)text, size);
}

static void acknowledged(void)
{
    used = (uint16_t)(used - flying);
    memmove(out, out + flying, used);
    flying = 0;
}

/* uIP calls this when something has happened on the connection, and twice a second. */
void uip_node_appcall(void)
{
    int result = BCN_OK;
    if (uip_closed() || uip_aborted() || uip_timedout()) {
        connection = NULL;
        return;
    }
    if (uip_connected()) {
        bcn_tcp_connected(&tcp);
        used = flying = 0;
    }
    if (uip_acked()) {
        acknowledged();
    }
    if (uip_newdata()) {
        result = bcn_tcp_feed(&tcp, (const uint8_t *)uip_appdata, uip_datalen());
    }
    if (result == BCN_OK) {
        result = publish_each_second();
    }
    if (result == BCN_LOST) {
        uip_abort();
        connection = NULL;
    } else if (uip_rexmit()) {
        uip_send(out, flying);
    } else if (flying == 0 && used != 0) {
        flying = used < uip_mss() ? used : uip_mss();
        uip_send(out, flying);
    }
}

static void send_packet(int tap)
{
    if (uip_len > 0 && write(tap, uip_buf, uip_len) != (ssize_t)uip_len) {
        perror("tap");
    }
}

static void send_ip(int tap)
{
    if (uip_len > 0) {
        uip_arp_out();
        send_packet(tap);
    }
}

static void receive(int tap)
{
    const ssize_t got = read(tap, uip_buf, UIP_BUFSIZE);
    uip_len = (u16_t)(got > 0 ? got : 0);
    if (uip_len >= sizeof(struct uip_eth_hdr) && ETHERNET->type == HTONS(UIP_ETHTYPE_IP)) {
        uip_arp_ipin();
        uip_input();
        send_ip(tap);
    } else if (uip_len >= sizeof(struct uip_eth_hdr) && ETHERNET->type == HTONS(UIP_ETHTYPE_ARP)) {
        uip_arp_arpin();
        send_packet(tap);
    }
}

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return tap >= 0 && ioctl(tap, TUNSETIFF, &request) == 0 ? tap : -1;
}

static void run(int tap, uip_ipaddr_t *gateway, uint16_t port)
{
    struct pollfd ready = {.fd = tap, .events = POLLIN};
    uint32_t periodic_ms = now_ms();
    for (;;) {
        if (poll(&ready, 1, 50) > 0) {
            receive(tap);
        } else if (now_ms() - periodic_ms >= SECOND_MS / 2) { /* uIP counts time in these */
            periodic_ms = now_ms();
            if (connection == NULL) {
                connection = uip_connect(gateway, htons(port));
            }
            uip_periodic(0);
            send_ip(tap);
        }
    }
}

static int read_address(const char *text, u16_t *address)
{
    unsigned a, b, c, d;
    if (sscanf(text, "%u.%u.%u.%u", &a, &b, &c, &d) != 4) {
        return 0;
    }
    uip_ipaddr(address, a, b, c, d);
    return 1;
}

int main(int count, char **words)
{
    struct uip_eth_addr mac = {{2, 0, 0, 0, 0, 1}};
    uip_ipaddr_t own, gateway, mask;
    const int tap = count == 5 ? open_tap(words[1]) : -1;
    if (tap < 0 || !read_address(words[2], own) || !read_address(words[3], gateway)) {
        fprintf(stderr, "use: uip_node TAP OWN GATEWAY PORT\n");
        return 2;
    }
    uip_init();
    uip_arp_init();
    uip_setethaddr(mac);
    uip_ipaddr(mask, 255, 255, 255, 0);
    uip_sethostaddr(own);
    uip_setdraddr(gateway);
    uip_setnetmask(mask);
    bcn_tcp_init(&tcp, to_gateway, NULL, buffer, sizeof buffer);
    (void)bcn_subscribe(&tcp.node, show, 2, on_show, NULL);
    due_ms = now_ms();
    run(tap, &gateway, (uint16_t)atoi(words[4]));
}
