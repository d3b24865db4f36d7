/* Firmware without an operating system: for each frame of "ping" it sends one of "pong" with the same data.
 * The serial line is polled, so bytes that come while it sends are lost on a core without a FIFO. */
#include "buscoupler_node.h"
#include "line.h"
#include "names.h"

static struct bcn_uart uart;
static uint8_t buffer[128];

static int to_line(void *context, const uint8_t *bytes, uint16_t size)
{
    (void)context;
    while (size-- > 0u) {
        put_byte(*bytes++);
    }
    return 0;
}

static void on_ping(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    const uint32_t pong[1] = {TOKEN_PONG};
    (void)context;
    (void)tokens;
    (void)count;
    (void)bcn_uart_publish(&uart, pong, 1, data, size);
}

int main(void)
{
    const uint32_t ping[1] = {TOKEN_PING};
    open_line();
    bcn_uart_init(&uart, to_line, 0, buffer, sizeof buffer);
    (void)bcn_subscribe(&uart.node, ping, 1, on_ping, 0);
    for (;;) {
        if (has_byte()) {
            const uint8_t byte = get_byte();
            bcn_uart_feed(&uart, &byte, 1);
        }
    }
}
