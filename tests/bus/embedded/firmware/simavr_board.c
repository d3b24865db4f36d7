/* `simavr_board FIRMWARE.elf`: an ATmega328P whose serial line is a pseudo-terminal, named on standard output.
 * SIGUSR1 presses the reset button. */
#define _XOPEN_SOURCE 600
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static int line;
static avr_irq_t *uart;
static int may_send = 1;
static volatile sig_atomic_t is_reset;

static void on_signal(int number)
{
    (void)number;
    is_reset = 1;
}

static void from_board(struct avr_irq_t *irq, uint32_t value, void *context)
{
    const unsigned char byte = (unsigned char)value;
    (void)irq;
    (void)context;
    if (write(line, &byte, 1) != 1) {
        exit(1);
    }
}

static void on_xon(struct avr_irq_t *irq, uint32_t value, void *context)
{
    (void)irq;
    (void)value;
    (void)context;
    may_send = 1;
}

static void on_xoff(struct avr_irq_t *irq, uint32_t value, void *context)
{
    (void)irq;
    (void)value;
    (void)context;
    may_send = 0;
}

static void set_raw(const char *name)
{
    struct termios raw;
    const int end = open(name, O_RDWR | O_NOCTTY); /* stays open: the line does not hang up between programs */
    if (end < 0 || tcgetattr(end, &raw) != 0) {
        exit(1);
    }
    raw.c_iflag = raw.c_oflag = raw.c_lflag = 0;
    (void)tcsetattr(end, TCSANOW, &raw);
}

/* A board that has just got power. */
static avr_t *boot(elf_firmware_t *firmware)
{
    uint32_t flags = 0;
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (avr == NULL) {
        exit(2);
    }
    avr_init(avr);
    avr_load_firmware(avr, firmware);
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    uart = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), 0);
    avr_irq_register_notify(uart + UART_IRQ_OUTPUT, from_board, NULL);
    avr_irq_register_notify(uart + UART_IRQ_OUT_XON, on_xon, NULL);
    avr_irq_register_notify(uart + UART_IRQ_OUT_XOFF, on_xoff, NULL);
    may_send = 1;
    return avr;
}

int main(int count, char **words)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    elf_firmware_t firmware = {0};
    avr_t *avr;
    if (count != 2 || elf_read_firmware(words[1], &firmware) != 0) {
        return 2;
    }
    firmware.frequency = 16000000;
    avr = boot(&firmware);
    line = posix_openpt(O_RDWR | O_NOCTTY);
    if (line < 0 || grantpt(line) != 0 || unlockpt(line) != 0) {
        return 1;
    }
    set_raw(ptsname(line));
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)printf("redirected to %s\n", ptsname(line));
    (void)fflush(stdout);
    for (unsigned long turn = 0;; turn++) {
        if (is_reset) {
            is_reset = 0;
            avr_terminate(avr);
            avr = boot(&firmware);
        }
        if (may_send && turn % 64 == 0) {
            struct pollfd ready = {.fd = line, .events = POLLIN};
            unsigned char byte;
            if (poll(&ready, 1, 0) > 0 && read(line, &byte, 1) == 1) {
                avr_raise_irq(uart + UART_IRQ_INPUT, byte);
            }
        }
        if (avr_run(avr) >= cpu_Done) {
            return 1;
        }
    }
}
