/* Firmware without an operating system: for each frame of "ping" it sends one of "pong" with the same data.
 * The serial line is polled, so bytes that come while it sends are lost on a core without a FIFO. */
#include "buscoupler_node.h"

#define REGISTER(at) (*(volatile uint32_t *)(at))

#if defined(__AVR__)
#include <avr/io.h>
static void open_line(void)
{
    UCSR0A = 1 << U2X0;
    UBRR0 = 3; /* 500,000 baud at 16 MHz */
    UCSR0B = 1 << RXEN0 | 1 << TXEN0;
}
static int has_byte(void) { return UCSR0A & 1 << RXC0; }
static uint8_t get_byte(void) { return UDR0; }
static void put_byte(uint8_t byte)
{
    while (!(UCSR0A & 1 << UDRE0)) {
    }
    UDR0 = byte;
}
#elif defined(MICROBIT) /* nRF51 */
#define UART 0x40002000u
static void open_line(void)
{
    REGISTER(UART + 0x500u) = 4u;
    REGISTER(UART + 0x000u) = 1u;
    REGISTER(UART + 0x008u) = 1u;
}
static int has_byte(void) { return REGISTER(UART + 0x108u) != 0u; }
static uint8_t get_byte(void)
{
    REGISTER(UART + 0x108u) = 0u;
    return (uint8_t)REGISTER(UART + 0x518u);
}
static void put_byte(uint8_t byte)
{
    REGISTER(UART + 0x11Cu) = 0u;
    REGISTER(UART + 0x51Cu) = byte;
    while (REGISTER(UART + 0x11Cu) == 0u) {
    }
}
#elif defined(STELLARIS) /* Cortex-M3 with a PL011 */
#define UART 0x4000C000u
static void open_line(void) { REGISTER(UART + 0x30u) = 0x301u; }
static int has_byte(void) { return (REGISTER(UART + 0x18u) & 0x10u) == 0u; }
static uint8_t get_byte(void) { return (uint8_t)REGISTER(UART); }
static void put_byte(uint8_t byte)
{
    while ((REGISTER(UART + 0x18u) & 0x20u) != 0u) {
    }
    REGISTER(UART) = byte;
}
#else /* RISC-V "virt" with a 16550 */
#define UART ((volatile uint8_t *)0x10000000u)
static void open_line(void) {}
static int has_byte(void) { return UART[5] & 1; }
static uint8_t get_byte(void) { return UART[0]; }
static void put_byte(uint8_t byte)
{
    while (!(UART[5] & 0x20)) {
    }
    UART[0] = byte;
}
#endif

int main(void);

#if defined(__arm__)
__attribute__((section(".start"), used)) static void (*const vectors[2])(void) = {
    (void (*)(void))0x20004000u, (void (*)(void))main};
#elif defined(__riscv)
__asm__(".section .start, \"ax\"\n.global _start\n_start: li sp, 0x80100000\nj main\n");
#endif

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
