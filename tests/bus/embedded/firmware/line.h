/* The serial line of each emulated board, and how its program starts. */
#include <stdint.h>

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
#elif defined(__mc68000__) /* "virt" with a Goldfish terminal; big-endian */
#define TTY 0xFF008000u
static void open_line(void) {}
static int has_byte(void) { return REGISTER(TTY + 0x04u) != 0u; }
static uint8_t get_byte(void)
{
    static volatile uint8_t byte;
    REGISTER(TTY + 0x10u) = (uint32_t)&byte;
    REGISTER(TTY + 0x14u) = 1u;
    REGISTER(TTY + 0x08u) = 3u;
    return byte;
}
static void put_byte(uint8_t byte) { REGISTER(TTY) = byte; }
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
#elif defined(__mc68000__)
__asm__(".section .start, \"ax\"\n.global _start\n_start: move.l #0x200000, %sp\njmp main\n.text\n");
#elif defined(__riscv)
__asm__(".section .start, \"ax\"\n.global _start\n_start: li sp, 0x80100000\nj main\n.text\n");
#endif
