/* Firmware that runs the vectors of bus/embedded/vectors.json: `vectors.h`, made from it, has them as numbers. For
 * each it compares what the node says on every link, and what it makes of that when it hears it. It prints the
 * names of those that are wrong, and "end". */
#include "buscoupler_node.h"
#include "vectors.h"
#include "line.h"

#define MOST 4096u
static uint8_t said[MOST], buffer[2 * MOST];
static uint16_t used, calls;
static const struct vector *now;
static int right;

static void print(const char *text)
{
    while (*text != 0) {
        put_byte((uint8_t)*text++);
    }
}

static int same(const uint8_t *a, uint16_t a_size, const uint8_t *b, uint16_t b_size)
{
    uint16_t i = 0;
    while (a_size == b_size && i < a_size && a[i] == b[i]) {
        i++;
    }
    return a_size == b_size && i == a_size;
}

static int take(void *context, const uint8_t *bytes, uint16_t size)
{
    (void)context;
    while (size-- > 0u && used < MOST) {
        said[used++] = *bytes++;
    }
    return 0;
}

/* A CAN frame: its length, and its bytes. */
static int take_can(void *context, uint32_t identifier, const uint8_t *bytes, uint8_t size)
{
    right &= identifier == ((4UL << 26) | (3UL << 21) | (0x1234UL << 8) | 5u);
    (void)take(context, &size, 1);
    return take(context, bytes, size);
}

static void heard(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    uint8_t i;
    (void)context;
    calls++;
    if (now->is_frame == 0u) {
        return;
    }
    right &= count == now->count && same(data, size, now->data, now->size);
    for (i = 0; i < count; i++) {
        right &= bcn_token(tokens, i) == now->tokens[i];
    }
}

static void on_line(const struct vector *v)
{
    static struct bcn_uart uart;
    used = calls = 0;
    bcn_uart_init(&uart, take, 0, buffer, sizeof buffer);
    (void)bcn_subscribe(&uart.node, 0, 0, heard, 0);
    if (v->is_frame) {
        (void)bcn_uart_publish(&uart, v->tokens, v->count, v->data, v->size);
        right &= same(said, used, v->uart, v->uart_size);
    }
    bcn_uart_feed(&uart, v->uart, v->uart_size);
    right &= calls == v->frames;
}

static void on_stream(const struct vector *v)
{
    static struct bcn_tcp tcp;
    used = calls = 0;
    bcn_tcp_init(&tcp, take, 0, buffer, sizeof buffer);
    (void)bcn_subscribe(&tcp.node, 0, 0, heard, 0);
    (void)bcn_tcp_publish(&tcp, v->tokens, v->count, v->data, v->size);
    right &= same(said, used, v->tcp, v->tcp_size);
    (void)bcn_tcp_feed(&tcp, v->tcp, v->tcp_size);
    right &= calls == 1;
}

static void on_can(const struct vector *v, uint8_t fd, const uint8_t *bytes, uint16_t size)
{
    static struct bcn_can can;
    uint16_t at = 0;
    used = calls = 0;
    bcn_can_init(&can, take_can, 0, 5, fd, buffer, sizeof buffer);
    (void)bcn_subscribe(&can.node, 0, 0, heard, 0);
    (void)bcn_can_publish(&can, v->tokens, v->count, v->data, v->size);
    right &= same(said, used, bytes, size);
    while (at < size) {
        bcn_can_feed(&can, 0x10723409u, bytes + at + 1, bytes[at], 0);
        at = (uint16_t)(at + 1u + bytes[at]);
    }
    right &= calls == 1;
}

int main(void)
{
    open_line();
    while (!has_byte()) { /* until somebody listens */
    }
    for (now = all; now < all + sizeof all / sizeof *all; now++) {
        right = 1;
        on_line(now);
        if (now->is_frame) {
            on_stream(now);
            on_can(now, 0, now->can, now->can_size);
            on_can(now, 1, now->can_fd, now->can_fd_size);
        }
        print(right ? "right" : now->what);
        print("\n");
    }
    print("end\n");
    for (;;) {
    }
}
