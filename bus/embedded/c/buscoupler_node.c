/* See buscoupler_node.h. */
#include "buscoupler_node.h"
#include <stddef.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#endif

#define DATA_MAX 2048u
#define FRAME_MIN 4u
#define ENVELOPE 12u
#define CRC_SIZE 4u

/* A frame, or bytes that are one already (tokens_end is 0), and its CRC-32. */
struct message {
    const uint32_t *tokens;
    const uint8_t *data;
    uint32_t crc;
    uint16_t size, tokens_end, data_end;
    uint8_t count;
#if BCN_TMQ
    uint8_t type;
#endif
};

#if BCN_TMQ
#define TYPE(m) ((m)->type)
#else
#define TYPE(m) BCN_PUB
#endif

#if BCN_UART || BCN_I2C || (BCN_CAN && BCN_RECEIVE)
#ifdef __AVR__ /* a constant is in RAM there, unless it is PROGMEM */
#define TABLE(index) pgm_read_dword(&crc_table[(index)])
#else
#define PROGMEM
#define TABLE(index) (crc_table[(index)])
#endif

static const uint32_t crc_table[16] PROGMEM = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};

static uint32_t crc_step(uint32_t crc, uint8_t byte)
{
    crc = (crc >> 4) ^ TABLE((crc ^ byte) & 15u);
    return (crc >> 4) ^ TABLE((crc ^ ((uint32_t)byte >> 4)) & 15u);
}
#endif

#if BCN_RECEIVE && (BCN_UART || BCN_I2C || BCN_CAN)
#define CRC_RESIDUE 0xDEBB20E3u /* before the final xor: 2144DF1C after it */

static uint32_t crc_of(const uint8_t *bytes, uint16_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    uint16_t i;
    for (i = 0u; i < size; i++) {
        crc = crc_step(crc, bytes[i]);
    }
    return crc;
}
#endif

static uint8_t byte_at(const struct message *m, uint16_t at)
{
    uint32_t word;
    if (at >= m->data_end) {
        word = m->crc >> (8u * ((at - m->data_end) & 3u));
    } else if (at >= m->tokens_end) {
        word = m->data[at - m->tokens_end];
    } else if (at < FRAME_MIN) {
        const uint8_t head[4] = {TYPE(m), m->count, (uint8_t)(m->size >> 8), (uint8_t)(m->size & 255u)};
        word = head[at];
    } else {
        word = m->tokens[(at >> 2) - 1u] >> (8u * (3u - (at & 3u)));
    }
    return (uint8_t)(word & 255u);
}

static int frame(struct message *m, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    m->tokens = tokens;
    m->data = data;
    m->size = size;
    m->count = count;
    m->tokens_end = (uint16_t)(FRAME_MIN + 4u * count);
    m->data_end = (uint16_t)(m->tokens_end + size);
    m->crc = 0u;
#if BCN_TMQ
    m->type = BCN_PUB;
#endif
    return size > DATA_MAX ? BCN_TOO_LONG : BCN_OK;
}

#if BCN_UART || BCN_I2C
static void seal(struct message *m)
{
    uint32_t crc = 0xFFFFFFFFu;
    uint16_t at;
    for (at = 0u; at < m->data_end; at++) {
        crc = crc_step(crc, byte_at(m, at));
    }
    m->crc = crc ^ 0xFFFFFFFFu;
}
#endif

/* Subscriptions and received messages */

#if BCN_RECEIVE
static uint16_t number(const uint8_t *b)
{
    return (uint16_t)((uint16_t)((uint16_t)b[0] << 8) | b[1]);
}

static void begin(struct bcn_node *node)
{
    node->heard = 0u;
    node->rejected = 0u;
#if BCN_RS485
    node->polls = 0u;
#endif
    node->subscriptions = 0u;
}

int bcn_subscribe(struct bcn_node *node, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context)
{
    struct bcn_subscription *call;
    if (node->subscriptions >= (uint8_t)BCN_SUBSCRIPTIONS) {
        return BCN_FULL;
    }
    call = &node->calls[node->subscriptions++];
    call->tokens = tokens;
    call->count = count;
    call->callback = callback;
    call->context = context;
    return BCN_OK;
}

uint32_t bcn_token(const uint8_t *tokens, uint8_t index)
{
    const uint8_t *b = tokens + (uint16_t)(4u * index);
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int starts(const struct bcn_subscription *call, const uint8_t *tokens, uint8_t count)
{
    uint8_t i;
    if (call->count > count) {
        return 0;
    }
    for (i = 0u; i < call->count; i++) {
        if (bcn_token(tokens, i) != call->tokens[i]) {
            return 0;
        }
    }
    return 1;
}

#if BCN_UART || BCN_CAN || BCN_TCP || BCN_I2C
static int enveloped(const uint8_t *b, uint16_t size)
{
    return size > ENVELOPE && b[0] == 0xE1u && b[2] > 0xEFu;
}

#endif

/* The length of a frame that its header announces, 0 if there is none. */
static uint16_t frame_size(const uint8_t *b, uint16_t size)
{
    uint16_t data;
    if (size < FRAME_MIN) {
        return 0u;
    }
    data = number(b + 2);
    return data > DATA_MAX ? 0u : (uint16_t)(FRAME_MIN + 4u * b[1] + data);
}

#if BCN_CAN
/* The length of the frame, or envelope and frame, at the start of `size` bytes; 0 if there is none. */
static uint16_t message_size(const uint8_t *b, uint16_t size)
{
    const uint16_t inner = enveloped(b, size) != 0 ? (uint16_t)ENVELOPE : 0u;
    const uint16_t rest = (uint16_t)(size - inner), found = frame_size(b + inner, rest);
    if (found == 0u || found > rest || (inner != 0u && found != (number(b + 2) & 0xFFFu))) {
        return 0u;
    }
    return (uint16_t)(inner + found);
}
#endif

/* Call back for a whole frame. */
static void pass_on(struct bcn_node *node, const uint8_t *b)
{
    const uint16_t size = number(b + 2);
    const uint8_t count = b[1];
    uint8_t i;
    b += FRAME_MIN;
    for (i = 0u; i < node->subscriptions; i++) {
        const struct bcn_subscription *call = &node->calls[i];
        if (starts(call, b, count) != 0) {
            call->callback(call->context, b, count, b + (uint16_t)(4u * count), size);
        }
    }
}

#if BCN_UART || BCN_CAN || BCN_TCP || BCN_I2C
static void deliver(struct bcn_node *node, const uint8_t *b, uint16_t size)
{
    node->heard++;
    if (enveloped(b, size) != 0) {
        size = (uint16_t)(size - ENVELOPE);
        if (b[1] > 15u || (number(b + 2) & 0xFFFu) != size) {
            size = 0u;
        }
        b += ENVELOPE;
    }
    if (size == 0u || frame_size(b, size) != size) {
        node->rejected++;
        return;
    }
    pass_on(node, b);
}
#endif
#endif

/* Questions, and silence */

#if BCN_ASK
#define SECOND_US 1000000u

static const uint32_t ask_words[2] = {0xAA5B7E09u, 0xCFE7DDA5u}; /* buscoupler, values */
#define ASK_ASK 0x3036CCAFu
#define ASK_VALUE 0x25ACAFDDu
#define ASK_END 0x322A0B71u
#define ASK_TIME 0x49384495u
#define ASK_NOW 0x3699F3AFu

static void on_answer(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    struct bcn_ask *ask = (struct bcn_ask *)context;
    uint32_t word, nonce;
    if (count < BCN_ASK_TOKENS) {
        return;
    }
    word = bcn_token(tokens, 2u);
    nonce = bcn_token(tokens, 3u);
    if (word == ASK_VALUE && count > BCN_ASK_TOKENS && nonce == ask->values_nonce && ask->complete == 0u) {
        ask->value(ask->context, tokens + 20, (uint8_t)(count - 5u), data, size, bcn_token(tokens, 4u));
    } else if (word == ASK_END && nonce == ask->values_nonce && size == 8u && count == BCN_ASK_TOKENS) {
        ask->said = bcn_token(data, 0u);
        ask->left_out = bcn_token(data, 1u);
        ask->complete = 1u;
    } else if (word == ASK_NOW && nonce == ask->time_nonce && size == 8u && count == BCN_ASK_TOKENS
               && ask->fresh == 1u) {
        ask->seconds = bcn_token(data, 0u);
        ask->microseconds = bcn_token(data, 1u);
        ask->fresh = 2u;
        ask->known = 0u;
    } else {
        /* it answers another question */
    }
}

static const uint32_t *question(struct bcn_ask *ask, uint32_t word)
{
    ask->nonce++;
    ask->tokens[0] = ask_words[0];
    ask->tokens[1] = ask_words[1];
    ask->tokens[2] = word;
    ask->tokens[3] = ask->nonce;
    return ask->tokens;
}

int bcn_ask_init(struct bcn_ask *ask, struct bcn_node *node, uint32_t nonce)
{
    uint8_t i;
    ask->nonce = ask->values_nonce = ask->time_nonce = nonce;
    ask->complete = 1u;
    ask->fresh = ask->known = 0u;
    for (i = 0u; i < BCN_ASK_TIME_BYTES; i++) {
        ask->data[i] = 0u;
    }
    return bcn_subscribe(node, ask_words, 2u, on_answer, ask);
}

const uint32_t *bcn_ask_values(struct bcn_ask *ask,
                               void (*value)(void *, const uint8_t *, uint8_t, const uint8_t *, uint16_t, uint32_t),
                               void *context)
{
    const uint32_t *tokens = question(ask, ASK_ASK);
    ask->value = value;
    ask->context = context;
    ask->values_nonce = ask->nonce;
    ask->complete = 0u;
    return tokens;
}

uint16_t bcn_ask_pattern(uint8_t *bytes, const uint32_t *tokens, uint8_t count)
{
    struct message m;
    const uint16_t size = (uint16_t)(4u * count);
    uint16_t at;
    (void)frame(&m, tokens, count, NULL, 0u);
    for (at = 0u; at < size; at++) {
        bytes[at] = byte_at(&m, (uint16_t)(FRAME_MIN + at));
    }
    return size;
}

const uint32_t *bcn_ask_time(struct bcn_ask *ask, uint32_t now_us)
{
    const uint32_t *tokens = question(ask, ASK_TIME);
    ask->time_nonce = ask->nonce;
    ask->asked_us = now_us;
    ask->fresh = 1u;
    return tokens;
}

int bcn_ask_heard(struct bcn_ask *ask, uint32_t now_us)
{
    if (ask->fresh != 2u) {
        return 0;
    }
    ask->fresh = 0u;
    ask->known = 1u;
    ask->heard_us = now_us;
    ask->round_us = now_us - ask->asked_us;
    return 1;
}

/* Add the whole seconds of `us`, and return the rest. A core without a divider pays much for a division. */
static uint32_t whole_seconds(uint32_t us, uint32_t *seconds)
{
    uint32_t worth = 4096u, unit = SECOND_US * 4096u; /* the most whose microseconds are below 2^32 */
    while (worth != 0u) {
        if (us >= unit) {
            us -= unit;
            *seconds += worth;
        }
        unit >>= 1;
        worth >>= 1;
    }
    return us;
}

int bcn_ask_now(const struct bcn_ask *ask, uint32_t now_us, uint32_t *seconds, uint32_t *microseconds)
{
    uint32_t us;
    *seconds = ask->seconds;
    us = whole_seconds(ask->microseconds, seconds);
    us += whole_seconds(ask->round_us >> 1, seconds);
    us += whole_seconds(now_us - ask->heard_us, seconds);
    *microseconds = whole_seconds(us, seconds);
    return ask->known != 0u;
}

static uint16_t polls_of(const struct bcn_node *node)
{
#if BCN_RS485
    return node->polls;
#else
    (void)node;
    return 0u;
#endif
}

void bcn_watch_init(struct bcn_watch *watch, const struct bcn_node *node, uint32_t now_ms)
{
    watch->since_ms = now_ms;
    watch->heard = node->heard;
    watch->rejected = node->rejected;
    watch->polls = polls_of(node);
    watch->result = (int8_t)BCN_OK;
}

int bcn_watch(struct bcn_watch *watch, const struct bcn_node *node, uint32_t now_ms, uint32_t silence_ms)
{
    const uint16_t heard = (uint16_t)(node->heard - watch->heard);
    const uint16_t rejected = (uint16_t)(node->rejected - watch->rejected);
    const int8_t last = watch->result;
    if (heard != 0u || polls_of(node) != watch->polls) {
        bcn_watch_init(watch, node, now_ms);
        if (rejected == heard && (heard != 0u || last == (int8_t)BCN_VERSION)) { /* a poll has no version */
            watch->result = (int8_t)BCN_VERSION;
        }
    } else if (now_ms - watch->since_ms > silence_ms) {
        watch->result = (int8_t)BCN_SILENT;
    } else {
        /* it may be quiet for so long */
    }
    return watch->result;
}
#endif

/* A queue of messages: two bytes of length, and the message */

#if BCN_RS485 || BCN_I2C
static int push(struct bcn_queue *queue, const struct message *m)
{
    uint16_t at;
    if (m->data_end + 2u > (uint16_t)(queue->capacity - queue->used)) {
        return BCN_FULL;
    }
    queue->bytes[queue->used++] = (uint8_t)(m->data_end >> 8);
    queue->bytes[queue->used++] = (uint8_t)(m->data_end & 255u);
    for (at = 0u; at < m->data_end; at++) {
        queue->bytes[queue->used++] = byte_at(m, at);
    }
    return BCN_OK;
}
#endif

#if BCN_RS485 || BCN_I2C || BCN_TMQ
static void whole(struct message *m, const uint8_t *bytes, uint16_t size)
{
    m->tokens_end = 0u;
    m->data = bytes;
    m->data_end = size;
    m->crc = 0u;
}

/* Remove the message that begins at `from`. */
static void pull(struct bcn_queue *queue, uint16_t from)
{
    const uint16_t size = (uint16_t)(2u + number(queue->bytes + from));
    uint16_t at;
    queue->used = (uint16_t)(queue->used - size);
    for (at = from; at < queue->used; at++) {
        queue->bytes[at] = queue->bytes[at + size];
    }
}
#endif

#if BCN_RS485 || BCN_I2C
/* The first message, of which the queue is not empty. */
static void first(const struct bcn_queue *queue, struct message *m)
{
    whole(m, queue->bytes + 2, number(queue->bytes));
}

static void pop(struct bcn_queue *queue)
{
    pull(queue, 0u);
}
#endif

/* The serial line */

#if BCN_UART
#define RUN 254u

static int put(const struct bcn_uart *uart, uint8_t byte)
{
    return uart->write(uart->context, &byte, 1u);
}

/* Write one block of COBS; return where the next one starts, 0 if the driver refused. */
static uint16_t block(const struct bcn_uart *uart, const struct message *m, uint16_t at, uint16_t end)
{
    uint16_t n = 0u, i;
    while (n < RUN && at + n < end && byte_at(m, (uint16_t)(at + n)) != 0u) {
        n++;
    }
    if (put(uart, (uint8_t)(n + 1u)) != 0) {
        return 0u;
    }
    for (i = 0u; i < n; i++) {
        if (put(uart, byte_at(m, (uint16_t)(at + i))) != 0) {
            return 0u;
        }
    }
    at = (uint16_t)(at + n);
    return at < end && n == RUN ? at : (uint16_t)(at + 1u); /* the zero that this block stands for */
}

static int send_line(const struct bcn_uart *uart, struct message *m)
{
    uint16_t at = 0u, end;
    seal(m);
    end = (uint16_t)(m->data_end + CRC_SIZE);
    if (put(uart, 0u) != 0) {
        return BCN_UNSENT;
    }
    do {
        at = block(uart, m, at, end);
        if (at == 0u) {
            return BCN_UNSENT;
        }
    } while (at <= end);
    return put(uart, 0u) != 0 ? BCN_UNSENT : BCN_OK;
}

void bcn_uart_init(struct bcn_uart *uart, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity)
{
    uart->write = write;
    uart->context = context;
#if BCN_RECEIVE
    begin(&uart->node);
    uart->buffer = buffer;
    uart->capacity = capacity;
    uart->used = uart->cobs = uart->too_short = uart->crc = uart->oversize = 0u;
    uart->left = uart->begun = uart->skipping = 0u;
    uart->full = 1u;
#else
    (void)buffer;
    (void)capacity;
#endif
}

int bcn_uart_publish(const struct bcn_uart *uart, const uint32_t *tokens, uint8_t count, const uint8_t *data,
                     uint16_t size)
{
    struct message m;
    return frame(&m, tokens, count, data, size) != BCN_OK ? BCN_TOO_LONG : send_line(uart, &m);
}

#if BCN_RECEIVE
/* The run between two zeros ended: return the length of its message, or 0. */
static uint16_t ended(struct bcn_uart *uart)
{
    if (uart->left != 0u) {
        uart->cobs++;
    } else if (uart->used < FRAME_MIN + CRC_SIZE) {
        uart->too_short++;
    } else if (crc_of(uart->buffer, uart->used) != CRC_RESIDUE) {
        uart->crc++;
    } else {
        return (uint16_t)(uart->used - CRC_SIZE);
    }
    return 0u;
}

static void hold(struct bcn_uart *uart, uint8_t byte)
{
    if (uart->used < uart->capacity) {
        uart->buffer[uart->used++] = byte;
    } else if (uart->skipping == 0u) {
        uart->skipping = 1u;
        uart->oversize++;
    } else {
        /* it is skipped */
    }
}

static void take(struct bcn_uart *uart, uint8_t byte)
{
    uart->begun = 1u;
    if (uart->left != 0u) {
        uart->left--;
        hold(uart, byte);
        return;
    }
    if (uart->full == 0u) {
        hold(uart, 0u);
    }
    uart->full = (byte == 255u) ? 1u : 0u;
    uart->left = (uint8_t)(byte - 1u);
}

/* Take one byte of the line; return the length of the message that it ends, or 0. */
static uint16_t hear(struct bcn_uart *uart, uint8_t byte)
{
    uint16_t size = 0u;
    if (byte != 0u) {
        take(uart, byte);
        return 0u;
    }
    if (uart->begun != 0u && uart->skipping == 0u) {
        size = ended(uart);
    }
    uart->used = 0u;
    uart->left = uart->begun = uart->skipping = 0u;
    uart->full = 1u;
    return size;
}

void bcn_uart_feed(struct bcn_uart *uart, const uint8_t *bytes, uint16_t size)
{
    uint16_t i;
    for (i = 0u; i < size; i++) {
        const uint16_t length = hear(uart, bytes[i]);
        if (length != 0u) {
            deliver(&uart->node, uart->buffer, length);
        }
    }
}
#endif
#endif

/* The shared pair */

#if BCN_RS485
#define ECHO_MS 1250u

void bcn_rs485_init(struct bcn_rs485 *pair, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity,
                    uint8_t address, uint8_t echo, uint8_t *queue, uint16_t queue_capacity)
{
    bcn_uart_init(&pair->uart, write, context, buffer, capacity);
    pair->queue.bytes = queue;
    pair->queue.capacity = queue_capacity;
    pair->queue.used = 0u;
    pair->polled_ms = pair->said_ms = pair->said_crc = 0u;
    pair->said_size = 0u;
    pair->address = address;
    pair->echo = echo;
    pair->polled = pair->said = 0u;
    pair->turnaround_ms = 1u;
    pair->answer_ms = 20u;
}

int bcn_rs485_publish(struct bcn_rs485 *pair, const uint32_t *tokens, uint8_t count, const uint8_t *data,
                      uint16_t size)
{
    struct message m;
    return frame(&m, tokens, count, data, size) != BCN_OK ? BCN_TOO_LONG : push(&pair->queue, &m);
}

/* Tell whether the message of `size` bytes in the buffer, before its CRC, is the one that was sent last. */
static int is_echo(struct bcn_rs485 *pair, uint16_t size, uint32_t now_ms)
{
    const uint8_t *b = pair->uart.buffer + size;
    const uint32_t crc = (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    if (now_ms - pair->said_ms > ECHO_MS) {
        pair->said = 0u;
    }
    if (pair->said == 0u || size != pair->said_size || crc != pair->said_crc) {
        return 0;
    }
    pair->said = 0u;
    return 1;
}

static void overhear(struct bcn_rs485 *pair, uint16_t size, uint32_t now_ms)
{
    const uint8_t *b = pair->uart.buffer;
    const int is_control = (size == 4u && b[0] == 0xE2u && b[2] == 0xFFu) ? 1 : 0;
    if (is_echo(pair, size, now_ms) != 0) {
        return;
    }
    pair->polled = (is_control != 0 && b[1] == pair->address && b[3] == 0u) ? 1u : 0u;
    pair->uart.node.polls = (uint16_t)(pair->uart.node.polls + pair->polled);
    pair->polled_ms = now_ms;
    if (is_control == 0) {
        deliver(&pair->uart.node, b, size);
    }
}

void bcn_rs485_feed(struct bcn_rs485 *pair, const uint8_t *bytes, uint16_t size, uint32_t now_ms)
{
    uint16_t i;
    for (i = 0u; i < size; i++) {
        const uint16_t length = hear(&pair->uart, bytes[i]);
        if (length != 0u) {
            overhear(pair, length, now_ms);
        }
    }
}

int bcn_rs485_due(const struct bcn_rs485 *pair, uint32_t now_ms)
{
    /* not while another speaks: the poll was read late. A glitch of two bytes is nobody. */
    return pair->polled != 0u && pair->uart.used < 2u && now_ms - pair->polled_ms >= pair->turnaround_ms;
}

int bcn_rs485_answer(struct bcn_rs485 *pair, uint32_t now_ms)
{
    const uint8_t done[4] = {0xE2u, pair->address, 0xFFu, 1u};
    struct message m;
    int result;
    if (bcn_rs485_due(pair, now_ms) == 0) {
        return BCN_OK;
    }
    pair->polled = 0u;
    if (now_ms - pair->polled_ms > pair->answer_ms) {
        return BCN_OK; /* too late: the gateway goes on */
    }
    if (pair->queue.used != 0u) {
        first(&pair->queue, &m);
    } else {
        whole(&m, done, 4u);
    }
    result = send_line(&pair->uart, &m);
    pair->said = pair->echo;
    pair->said_ms = now_ms;
    pair->said_crc = m.crc;
    pair->said_size = m.data_end;
    if (pair->queue.used != 0u) {
        pop(&pair->queue);
    }
    return result;
}
#endif

/* CAN */

#if BCN_CAN
#define SOT 0x80u
#define EOT 0x40u
#define TOGGLE 0x20u
#define TID 0x1Fu
#define SUBJECT 0x1234u
#define SUBJECT_MAX 0x1FFFu
#define MESSAGE (3UL << 21)
#define NOT_MESSAGE (1UL << 25 | 1UL << 23 | 1UL << 7)
#define ANONYMOUS (1UL << 24)
#define GAP_MS 1000u
#define REPEAT_MS 2000u
#define CRC16_SIZE 2u
#define NOBODY 0xFFu
#if BCN_CAN_FD
#define FRAME_MAX 64u
#else
#define FRAME_MAX 8u
#endif

static uint16_t crc16_step(uint16_t crc, uint8_t byte)
{
    uint16_t x = (uint16_t)((crc >> 8) ^ byte);
    x = (uint16_t)(x ^ (x >> 4));
    return (uint16_t)((uint32_t)crc << 8 ^ (uint32_t)x << 12 ^ (uint32_t)x << 5 ^ x);
}

void bcn_can_init(struct bcn_can *can, bcn_can_send send, void *context, uint8_t node_id, uint8_t fd,
                  uint8_t *buffer, uint16_t capacity)
{
#if BCN_RECEIVE
    uint8_t i;
    begin(&can->node);
    can->buffer = buffer;
    can->capacity = (uint16_t)(capacity / (uint8_t)BCN_CAN_SLOTS);
    for (i = 0u; i < (uint8_t)BCN_CAN_DROPS; i++) {
        can->drops[i] = 0u;
    }
    for (i = 0u; i < (uint8_t)BCN_CAN_SLOTS; i++) {
        can->slots[i].source = NOBODY;
    }
#else
    (void)buffer;
    (void)capacity;
#endif
    can->send = send;
    can->context = context;
    can->subject = SUBJECT;
    can->node_id = node_id;
    can->priority = 4u;
    can->fd = fd;
    can->tid = 0u;
}

/* The next legal length of an FD frame; above 8 these are multiples of 4, 16, 32 and 64. */
static uint8_t rounded(uint8_t size)
{
    uint8_t less = 63u;
    if (size <= 8u) {
        less = 0u;
    } else if (size <= 24u) {
        less = 3u;
    } else if (size <= 32u) {
        less = 31u;
    } else if (size <= 48u) {
        less = 15u;
    } else {
        /* 64 */
    }
    return (uint8_t)((uint8_t)(size + less) & (uint8_t)(0xFFu ^ less));
}

static uint8_t padding(uint16_t size)
{
    uint16_t rest = size;
    if (size > 63u) {
        rest = (uint16_t)(size + CRC16_SIZE);
        while (rest >= 63u) { /* many cores cannot divide */
            rest = (uint16_t)(rest - 63u);
        }
    }
    return rest == 0u ? 0u : (uint8_t)(rounded((uint8_t)(rest + 1u)) - rest - 1u);
}

int bcn_can_publish(struct bcn_can *can, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    const uint32_t id = (uint32_t)can->priority << 26 | MESSAGE | (uint32_t)can->subject << 8 | can->node_id;
    const uint8_t width = BCN_CAN_FD && can->fd ? 63u : 7u;
    uint8_t bytes[FRAME_MAX], n = 0u, tail, byte;
    uint16_t crc = 0xFFFFu, at, padded, end;
    struct message m;
    if (frame(&m, tokens, count, data, size) != BCN_OK) {
        return BCN_TOO_LONG;
    }
    padded = end = (uint16_t)(m.data_end + (width > 7u ? padding(m.data_end) : 0u));
    if (m.data_end > width) {
        end = (uint16_t)(padded + CRC16_SIZE);
    }
    tail = (uint8_t)(SOT | TOGGLE | (can->tid++ & TID));
    for (at = 0u; at < end; at++) {
        if (at < padded) {
            byte = at < m.data_end ? byte_at(&m, at) : 0u;
            crc = crc16_step(crc, byte);
        } else {
            byte = (uint8_t)(at == padded ? crc >> 8 : crc & 255u);
        }
        bytes[n++] = byte;
        if (n == width || at + 1u == end) {
            bytes[n] = (uint8_t)(at + 1u == end ? tail | EOT : tail);
            if (can->send(can->context, id, bytes, (uint8_t)(n + 1u)) != 0) {
                return BCN_UNSENT;
            }
            tail = (uint8_t)((tail & (TOGGLE | TID)) ^ TOGGLE);
            n = 0u;
        }
    }
    return BCN_OK;
}

#if BCN_RECEIVE
static uint8_t *buffer_of(const struct bcn_can *can, const struct bcn_can_slot *slot)
{
    return can->buffer + (uint16_t)(can->capacity * (uint16_t)(slot - can->slots));
}

/* The slot of a node, or NULL. */
static struct bcn_can_slot *slot_of(struct bcn_can *can, uint8_t source)
{
    uint8_t i;
    for (i = 0u; i < (uint8_t)BCN_CAN_SLOTS; i++) {
        if (can->slots[i].source == source) {
            return &can->slots[i];
        }
    }
    return NULL;
}

/* Tell whether a slot may be taken from its node: its transfer has ended, or stands still. */
static int idle(const struct bcn_can_slot *slot, uint32_t now_ms)
{
    return slot->open == 0u || now_ms - slot->heard_ms > GAP_MS;
}

/* Take a free slot, or of the idle ones that which was heard last the longest ago; NULL if there is none. */
static struct bcn_can_slot *new_slot(struct bcn_can *can, uint8_t source, uint32_t now_ms)
{
    struct bcn_can_slot *found = slot_of(can, NOBODY);
    const int is_free = (found != NULL) ? 1 : 0;
    uint8_t i;
    for (i = 0u; i < (uint8_t)BCN_CAN_SLOTS && is_free == 0; i++) {
        struct bcn_can_slot *slot = &can->slots[i];
        if (idle(slot, now_ms) && (found == NULL || now_ms - slot->heard_ms > now_ms - found->heard_ms)) {
            found = slot;
        }
    }
    if (found != NULL) {
        found->source = source;
        found->open = found->known = 0u;
        found->heard_ms = now_ms;
    }
    return found;
}

static void drop(struct bcn_can *can, struct bcn_can_slot *slot, uint8_t reason)
{
    if (slot != NULL) {
        slot->open = 0u;
    }
    can->drops[reason]++;
}

static void accept(struct bcn_can *can, struct bcn_can_slot *slot, const uint8_t *b, uint16_t size, uint8_t tid,
                   uint32_t now_ms)
{
    size = message_size(b, size);
    if (size == 0u) {
        can->node.rejected++;
        return;
    }
    if (slot != NULL) {
        const uint32_t crc = crc_of(b, size);
        if (slot->known != 0u && slot->accepted_tid == tid && now_ms - slot->accepted_ms <= REPEAT_MS
            && slot->accepted_crc == crc) {
            can->drops[BCN_CAN_DUPLICATE]++;
            return;
        }
        slot->known = 1u;
        slot->accepted_tid = tid;
        slot->accepted_ms = slot->heard_ms = now_ms;
        slot->accepted_crc = crc;
    }
    deliver(&can->node, b, size);
}

static int same(const uint8_t *a, const uint8_t *b, uint16_t size)
{
    uint16_t i;
    for (i = 0u; i < size; i++) {
        if (a[i] != b[i]) {
            return 0;
        }
    }
    return 1;
}

/* Add the data of a frame; 0 if there is no room. */
static int collect(struct bcn_can *can, struct bcn_can_slot *slot, const uint8_t *data, uint8_t size)
{
    uint8_t *b = buffer_of(can, slot);
    uint8_t i;
    if (size > (uint16_t)(can->capacity - slot->used)) {
        drop(can, slot, BCN_CAN_OVERSIZE);
        return 0;
    }
    for (i = 0u; i < size; i++) {
        b[slot->used++] = data[i];
    }
    return 1;
}

/* Begin a transfer; `size` is without the tail. */
static void start(struct bcn_can *can, uint8_t source, const uint8_t *data, uint8_t size, uint32_t now_ms)
{
    struct bcn_can_slot *slot = slot_of(can, source);
    const uint8_t tail = data[size], tid = (uint8_t)(tail & TID);
    if ((tail & TOGGLE) == 0u) { /* UAVCAN v0, another protocol on the same bus, starts with 0 */
        can->drops[BCN_CAN_TOGGLE]++;
        return;
    }
    if (slot != NULL && slot->open != 0u) {
        if (slot->tid == tid && slot->used == size && same(buffer_of(can, slot), data, size) != 0) {
            can->drops[BCN_CAN_REPEAT]++;
            return;
        }
        drop(can, slot, BCN_CAN_UNFINISHED);
    }
    if ((tail & EOT) == 0u && size < 7u) {
        can->drops[BCN_CAN_WIDTH]++;
        return;
    }
    if (slot == NULL) {
        slot = new_slot(can, source, now_ms);
    }
    if ((tail & EOT) != 0u) {
        accept(can, slot, data, size, tid, now_ms);
    } else if (slot == NULL) {
        can->drops[BCN_CAN_BUSY]++;
    } else {
        slot->used = 0u;
        slot->open = (uint8_t)collect(can, slot, data, size);
        slot->tid = tid;
        slot->toggle = TOGGLE;
        slot->heard_ms = now_ms;
    }
}

static void finish(struct bcn_can *can, struct bcn_can_slot *slot, uint32_t now_ms)
{
    const uint8_t *b = buffer_of(can, slot);
    uint16_t crc = 0xFFFFu, i;
    for (i = 0u; i < slot->used; i++) {
        crc = crc16_step(crc, b[i]);
    }
    if (crc != 0u) {
        drop(can, slot, BCN_CAN_CRC);
        return;
    }
    slot->open = 0u;
    accept(can, slot, b, (uint16_t)(slot->used - CRC16_SIZE), slot->tid, now_ms);
}

static void go_on(struct bcn_can *can, uint8_t source, const uint8_t *data, uint8_t size, uint32_t now_ms)
{
    struct bcn_can_slot *slot = slot_of(can, source);
    const uint8_t tail = data[size];
    if (slot == NULL || slot->open == 0u) {
        can->drops[BCN_CAN_ORPHAN]++;
    } else if (now_ms - slot->heard_ms > GAP_MS) {
        drop(can, slot, BCN_CAN_GAP);
    } else if ((tail & TID) != slot->tid) {
        drop(can, slot, BCN_CAN_ORDER);
    } else if ((tail & TOGGLE) == slot->toggle) {
        can->drops[BCN_CAN_REPEAT]++;
    } else if ((tail & EOT) == 0u && size < 7u) {
        drop(can, slot, BCN_CAN_WIDTH);
    } else if (collect(can, slot, data, size) != 0) {
        slot->toggle ^= TOGGLE;
        slot->heard_ms = now_ms;
        if ((tail & EOT) != 0u) {
            finish(can, slot, now_ms);
        }
    } else {
        /* collect has counted it */
    }
}

void bcn_can_feed(struct bcn_can *can, uint32_t identifier, const uint8_t *bytes, uint8_t size, uint32_t now_ms)
{
    const uint8_t source = (uint8_t)(identifier & 127u);
    if ((identifier & NOT_MESSAGE) != 0u || (identifier >> 8 & SUBJECT_MAX) != can->subject) {
        can->drops[BCN_CAN_FOREIGN]++;
    } else if ((identifier & ANONYMOUS) != 0u) {
        can->drops[BCN_CAN_ANONYMOUS]++;
    } else if (size == 0u) {
        can->drops[BCN_CAN_EMPTY]++;
    } else if ((bytes[size - 1u] & SOT) != 0u) {
        start(can, source, bytes, (uint8_t)(size - 1u), now_ms);
    } else {
        go_on(can, source, bytes, (uint8_t)(size - 1u), now_ms);
    }
}
#endif
#endif

/* The stream */

#if BCN_TCP
#define CHUNK 16u

void bcn_tcp_init(struct bcn_tcp *tcp, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity)
{
    tcp->write = write;
    tcp->context = context;
#if BCN_RECEIVE
    begin(&tcp->node);
    tcp->buffer = buffer;
    tcp->capacity = capacity;
    tcp->oversize = 0u;
#else
    (void)buffer;
    (void)capacity;
#endif
    bcn_tcp_connected(tcp);
}

void bcn_tcp_connected(struct bcn_tcp *tcp)
{
    tcp->lost = 0u;
#if BCN_RECEIVE
    tcp->used = tcp->skip = 0u;
    tcp->need = FRAME_MIN;
#endif
}

#define LOST_OUT 1u /* what comes is taken all the same */
#define LOST_IN 2u

static int pass(struct bcn_tcp *tcp, const uint8_t *bytes, uint16_t size)
{
    if (size != 0u && tcp->lost == 0u && tcp->write(tcp->context, bytes, size) != 0) {
        tcp->lost = LOST_OUT;
    }
    return tcp->lost != 0u ? BCN_LOST : BCN_OK;
}

int bcn_tcp_publish(struct bcn_tcp *tcp, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    struct message m;
    uint8_t chunk[CHUNK], n = 0u;
    uint16_t at;
    if (frame(&m, tokens, count, data, size) != BCN_OK) {
        return BCN_TOO_LONG;
    }
    for (at = 0u; at < m.tokens_end; at++) {
        chunk[n++] = byte_at(&m, at);
        if (n == CHUNK) {
            (void)pass(tcp, chunk, n);
            n = 0u;
        }
    }
    (void)pass(tcp, chunk, n);
    return pass(tcp, data, size);
}

#if BCN_RECEIVE
#define MORE 0u
#define ILLEGAL 0xFFFFu

/* The length of the message whose first `size` bytes (4 or more) these are; MORE: read 16 bytes. */
static uint16_t extent(const uint8_t *b, uint16_t size)
{
    const uint16_t plain = frame_size(b, size);
    uint16_t inner;
    if (plain != 0u) {
        return plain;
    }
    if (b[0] != 0xE1u || b[2] < 0xF0u) {
        return ILLEGAL;
    }
    if (size < ENVELOPE + FRAME_MIN) {
        return MORE;
    }
    inner = frame_size(b + ENVELOPE, FRAME_MIN);
    return inner != 0u && inner == (number(b + 2) & 0xFFFu) ? (uint16_t)(ENVELOPE + inner) : ILLEGAL;
}

/* `need` bytes are there: a header, or a message. */
static void advance(struct bcn_tcp *tcp)
{
    const uint16_t size = extent(tcp->buffer, tcp->used);
    tcp->need = size == MORE ? (uint16_t)(ENVELOPE + FRAME_MIN) : size;
    if (size == ILLEGAL || (size == MORE && tcp->need > tcp->capacity)) {
        tcp->lost |= LOST_IN;
    } else if (tcp->need == tcp->used || tcp->need > tcp->capacity) {
        const uint16_t used = tcp->used;
        tcp->skip = (uint16_t)(tcp->need - used);
        tcp->used = 0u;
        tcp->need = FRAME_MIN;
        if (tcp->skip != 0u) {
            tcp->oversize++;
        } else {
            deliver(&tcp->node, tcp->buffer, used);
        }
    } else {
        /* the rest of the message comes */
    }
}

int bcn_tcp_feed(struct bcn_tcp *tcp, const uint8_t *bytes, uint16_t size)
{
    uint16_t i;
    for (i = 0u; i < size && (tcp->lost & LOST_IN) == 0u; i++) {
        if (tcp->skip != 0u) {
            tcp->skip--;
        } else if (tcp->used < tcp->capacity) {
            tcp->buffer[tcp->used++] = bytes[i];
            if (tcp->used == tcp->need) {
                advance(tcp);
            }
        } else {
            tcp->lost |= LOST_IN; /* a buffer below the 16 bytes that bcn_tcp_init asks for */
        }
    }
    return tcp->lost != 0u ? BCN_LOST : BCN_OK;
}
#endif
#endif

/* The client of TMQ brokers */

#if BCN_TMQ
#define TMQ_MESSAGE 0x02u
#define TMQ_ADD 0x05u
#define TMQ_FORGET 0x0Du
#define TMQ_HELLO 0x10u
#define TMQ_REFUSED 0x30u
#define TMQ_KIND 0x3Fu /* a greeting or a refusal, whatever the role bits beside it */
#define TMQ_PUBLISH 0x45u
#define TMQ_SUBSCRIBE 0x46u
#define TMQ_DEAD 0x4Fu
#define TMQ_REMOVE 0x08u
#define TMQ_ANSWER 1u
#define TMQ_ANSWERED 2u
#define ADDRESS 8u
#define PACKET 64u
#define HELLO_MIN 8u
#define LINKS ((uint8_t)BCN_TMQ_LINKS)
#define PATTERNS ((uint8_t)BCN_TMQ_PATTERNS)
#define NOTHING 0xFFu
#define HEARTBEAT_MS 1000u
#define SILENCE_MS 3000u
#define CONNECT_MS 2000u
#define VERDICT_MS 250u
#define IDLE_MS 5000u
#define TRIAL_MS 5000u
#define REFRESH_MS 30000u
#define PAUSE_MS_MAX 10000u
#define PAUSE_S_MAX 32u

enum state {
    FREE,
    DIALLING,
    ASKING, /* it has not greeted */
    GREETED
};

enum role {
    BROKER,
    TRIAL, /* a broker that is better than the one in use */
    PEER,  /* a subscriber, to which messages go */
    CALLER /* a publisher, or a broker of 2015 */
};

static int same_address(const uint8_t *a, const uint8_t *b)
{
    uint8_t i;
    for (i = 0u; i < ADDRESS; i++) {
        if (a[i] != b[i]) {
            return 0;
        }
    }
    return 1;
}

static void set_address(uint8_t *to, const uint8_t *from)
{
    uint8_t i;
    for (i = 0u; i < ADDRESS; i++) {
        to[i] = from[i];
    }
}

/* Links */

/* The first link of a role, and of an address if there is one. */
static uint8_t link_of(const struct bcn_tmq *tmq, enum role role, const uint8_t *address)
{
    uint8_t i;
    for (i = 0u; i < LINKS; i++) {
        const struct bcn_tmq_link *link = &tmq->links[i];
        if (link->state != (uint8_t)FREE && link->role == (uint8_t)role
            && (address == NULL || same_address(link->address, address) != 0)) {
            return i;
        }
    }
    return NOTHING;
}

static uint8_t links_in(const struct bcn_tmq *tmq, enum role role)
{
    uint8_t i, count = 0u;
    for (i = 0u; i < LINKS; i++) {
        if (tmq->links[i].state != (uint8_t)FREE && tmq->links[i].role == (uint8_t)role) {
            count++;
        }
    }
    return count;
}

static void let_go(struct bcn_tmq *tmq, uint8_t i)
{
    tmq->links[i].state = (uint8_t)FREE;
    tmq->driver->close(tmq->context, i);
}

/* A free link. One is kept for a broker. */
static uint8_t free_link(const struct bcn_tmq *tmq, enum role role)
{
    uint8_t i, found = NOTHING, spare = 0u;
    for (i = 0u; i < LINKS; i++) {
        if (tmq->links[i].state == (uint8_t)FREE) {
            found = i;
            spare++;
        }
    }
    return role != BROKER && spare < 2u && link_of(tmq, BROKER, NULL) == NOTHING ? NOTHING : found;
}

static void begin_link(struct bcn_tmq *tmq, uint8_t i, enum role role, enum state state, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    link->role = (uint8_t)role;
    link->state = (uint8_t)state;
    link->heard_ms = link->said_ms = now_ms;
    link->used = link->skip = link->silence_ms = 0u;
    link->need = FRAME_MIN;
    link->stalled = link->listing = 0u;
}

/* Close the link of a role that was silent for longest; NOTHING if all have just been used. */
static uint8_t make_room(struct bcn_tmq *tmq, enum role role, uint32_t now_ms)
{
    uint8_t i, found = NOTHING;
    uint32_t longest = VERDICT_MS;
    for (i = 0u; i < LINKS; i++) {
        const struct bcn_tmq_link *link = &tmq->links[i];
        const uint32_t last = role == CALLER ? link->heard_ms : link->said_ms;
        if (link->state >= (uint8_t)ASKING && link->role == (uint8_t)role && link->stalled == 0u
            && now_ms - last > longest) {
            longest = now_ms - last;
            found = i;
        }
    }
    if (found != NOTHING) {
        let_go(tmq, found);
    }
    return found;
}

/* Packets that go out */

static void failed(struct bcn_tmq *tmq, uint8_t i, uint32_t now_ms);

/* Write a packet. One of 2015 reads once: up to PACKET bytes, and what has been queued, go out by one call. */
static void say(struct bcn_tmq *tmq, uint8_t i, const struct message *m, uint32_t now_ms)
{
    uint8_t packet[PACKET], n = 0u;
    uint16_t at = 0u;
    int result = 0;
    if (m->tokens_end == 0u) {
        result = tmq->driver->write(tmq->context, i, m->data, m->data_end);
    }
    while (m->tokens_end != 0u && at < m->data_end && result == 0) {
        packet[n++] = byte_at(m, at++);
        if (n == PACKET || at == m->data_end) {
            result = tmq->driver->write(tmq->context, i, packet, n);
            n = 0u;
        }
    }
    tmq->links[i].said_ms = now_ms;
    if (result != 0) {
        let_go(tmq, i);
        failed(tmq, i, now_ms);
    }
}

/* Write a packet without a pattern, or the one of `pattern`. */
static void tell(struct bcn_tmq *tmq, uint8_t i, uint8_t type, const struct bcn_tmq_pattern *pattern,
                 const uint8_t *data, uint8_t size, uint32_t now_ms)
{
    struct message m;
    (void)frame(&m, pattern != NULL ? pattern->tokens : NULL, pattern != NULL ? pattern->count : 0u, data, size);
    m.type = type;
    say(tmq, i, &m, now_ms);
}

static void greet(struct bcn_tmq *tmq, uint8_t i, uint8_t flags, uint32_t now_ms)
{
    const uint32_t n = tmq->number;
    uint8_t data[HELLO_MIN + ADDRESS], at, shift = 32u;
    data[0] = 1u;
    data[1] = flags;
    data[2] = (uint8_t)(SILENCE_MS >> 8);
    data[3] = (uint8_t)(SILENCE_MS & 255u);
    for (at = 0u; at < 4u; at++) {
        shift = (uint8_t)(shift - 8u);
        data[4u + at] = (uint8_t)(n >> shift & 255u);
    }
    set_address(data + HELLO_MIN, tmq->own);
    tell(tmq, i, TMQ_HELLO, NULL, data, HELLO_MIN + ADDRESS, now_ms);
}

static uint8_t due_pattern(const struct bcn_tmq *tmq)
{
    uint8_t i;
    for (i = 0u; i < PATTERNS; i++) {
        if (tmq->patterns[i].type != 0u && tmq->patterns[i].due != 0u) {
            return i;
        }
    }
    return NOTHING;
}

/* Tell the broker of pattern `at`. What it is told of no more is forgotten here, too. */
static void tell_pattern(struct bcn_tmq *tmq, uint8_t i, uint8_t at, uint32_t now_ms)
{
    struct bcn_tmq_pattern *pattern = &tmq->patterns[at];
    const uint8_t type = pattern->type;
    pattern->due = 0u;
    if ((type & TMQ_REMOVE) != 0u) {
        pattern->type = 0u;
    }
    tell(tmq, i, type, pattern, tmq->own, ADDRESS, now_ms);
}

static void all_due(struct bcn_tmq *tmq, uint32_t now_ms)
{
    uint8_t i;
    for (i = 0u; i < PATTERNS; i++) {
        tmq->patterns[i].due = 1u;
    }
    tmq->refresh_ms = now_ms;
}

/* Tell the broker what it must know: patterns, and who is gone. */
static void tell_broker(struct bcn_tmq *tmq, uint32_t now_ms)
{
    const uint8_t link = link_of(tmq, BROKER, NULL);
    uint8_t i = 0u, at = due_pattern(tmq);
    while (link != NOTHING && tmq->links[link].state == (uint8_t)GREETED && at != NOTHING) {
        tell_pattern(tmq, link, at, now_ms);
        at = due_pattern(tmq);
    }
    while (link != NOTHING && tmq->links[link].state == (uint8_t)GREETED && i < tmq->subscriber_count) {
        struct bcn_tmq_subscriber *one = &tmq->subscribers[i++];
        if (one->gone != 0u) {
            one->gone = 0u;
            tell(tmq, link, TMQ_DEAD, NULL, one->address, ADDRESS, now_ms);
        }
    }
}

/* Brokers */

static uint8_t dial(struct bcn_tmq *tmq, enum role role, const uint8_t *address, uint32_t now_ms)
{
    uint8_t i = free_link(tmq, role);
    if (i == NOTHING && role == PEER && make_room(tmq, PEER, now_ms) != NOTHING) {
        i = free_link(tmq, role);
    }
    if (i == NOTHING) {
        return NOTHING;
    }
    begin_link(tmq, i, role, DIALLING, now_ms);
    set_address(tmq->links[i].address, address);
    if (tmq->driver->dial(tmq->context, i, address) != 0) {
        tmq->links[i].state = (uint8_t)FREE;
        failed(tmq, i, now_ms);
    }
    return i;
}

static void want_broker(struct bcn_tmq *tmq, uint32_t now_ms)
{
    if (tmq->at >= tmq->broker_count || link_of(tmq, BROKER, NULL) != NOTHING) {
        return;
    }
    if (now_ms - tmq->broker_ms >= tmq->pause_ms && (tmq->each == 0u || due_pattern(tmq) != NOTHING)) {
        (void)dial(tmq, BROKER, tmq->brokers + (uint16_t)(ADDRESS * tmq->at), now_ms);
    }
}

/* Use the next broker; pause after the last one. */
static void move(struct bcn_tmq *tmq, uint32_t now_ms)
{
    tmq->up = tmq->each = 0u;
    all_due(tmq, now_ms);
    tmq->at++;
    if (tmq->at >= tmq->broker_count) {
        const uint32_t pause_ms = 2u * (uint32_t)tmq->pause_ms + HEARTBEAT_MS;
        tmq->at = 0u;
        tmq->broker_ms = now_ms;
        tmq->pause_ms = (uint16_t)(pause_ms < PAUSE_MS_MAX ? pause_ms : PAUSE_MS_MAX);
    }
}

static void broker_is_up(struct bcn_tmq *tmq, uint8_t each)
{
    tmq->up = 1u;
    tmq->each = each;
    tmq->pause_ms = 0u;
}

/* A better broker answered: leave the other. */
static void promote(struct bcn_tmq *tmq, uint8_t i, uint32_t now_ms)
{
    const uint8_t old = link_of(tmq, BROKER, NULL);
    if (old != NOTHING) {
        let_go(tmq, old);
    }
    tmq->links[i].role = (uint8_t)BROKER;
    tmq->at = 0u;
    all_due(tmq, now_ms);
}

/* Subscribers */

/* The pattern that has the type and the tokens of `head`. */
static uint8_t pattern_of(const struct bcn_tmq *tmq, uint8_t type, const struct message *head)
{
    uint8_t i;
    for (i = 0u; i < PATTERNS; i++) {
        const struct bcn_tmq_pattern *pattern = &tmq->patterns[i];
        struct message own;
        uint16_t at = FRAME_MIN;
        if (pattern->type != type || byte_at(head, 1u) != pattern->count) {
            continue;
        }
        (void)frame(&own, pattern->tokens, pattern->count, NULL, 0u);
        while (at < own.data_end && byte_at(&own, at) == byte_at(head, at)) {
            at++;
        }
        if (at == own.data_end) {
            return i;
        }
    }
    return NOTHING;
}

static void forget(struct bcn_tmq *tmq, uint8_t at)
{
    tmq->subscriber_count--;
    tmq->subscribers[at] = tmq->subscribers[tmq->subscriber_count];
}

static void forget_pattern(struct bcn_tmq *tmq, uint8_t pattern)
{
    uint8_t at = tmq->subscriber_count;
    while (at-- > 0u) {
        if (tmq->subscribers[at].pattern == pattern) {
            forget(tmq, at);
        }
    }
}

/* Take a subscriber in or out. One that a broker names is tried again at once. */
static void name_one(struct bcn_tmq *tmq, uint8_t type, uint8_t pattern, const uint8_t *address)
{
    struct bcn_tmq_subscriber *one;
    uint8_t at;
    for (at = 0u; at < tmq->subscriber_count; at++) {
        one = &tmq->subscribers[at];
        if (one->pattern == pattern && same_address(one->address, address) != 0) {
            if (type == TMQ_FORGET) {
                forget(tmq, at);
            } else {
                one->named = 1u;
                one->down_ms -= 1000u * PAUSE_S_MAX;
            }
            return;
        }
    }
    if (type == TMQ_FORGET) {
        return;
    }
    if (tmq->subscriber_count >= (uint8_t)BCN_TMQ_SUBSCRIBERS) {
        tmq->full++;
        return;
    }
    one = &tmq->subscribers[tmq->subscriber_count++];
    set_address(one->address, address);
    one->pattern = pattern;
    one->down_ms = 0u;
    one->pause_s = one->gone = 0u;
    one->named = 1u;
}

/* Take an address of a broker's list, which is behind its head; 0 if it makes no sense. */
static int named(struct bcn_tmq *tmq, const uint8_t *packet, const uint8_t *address)
{
    struct message head;
    uint8_t pattern;
    whole(&head, packet, (uint16_t)(FRAME_MIN + 4u * packet[1]));
    pattern = pattern_of(tmq, TMQ_PUBLISH, &head);
    if (pattern == NOTHING || (number(packet + 2) % ADDRESS) != 0u) {
        return 0;
    }
    if (number(packet + 2) == 0u) {
        return 1; /* an empty list */
    }
    if (number(address) != 2u || number(address + 2) == 0u) {
        return 0;
    }
    name_one(tmq, packet[0], pattern, address);
    return 1;
}

static int is_down(const struct bcn_tmq_subscriber *one, uint32_t now_ms)
{
    return one->pause_s != 0u && now_ms - one->down_ms < 1000u * one->pause_s;
}

/* A subscriber took no connection: tell the broker, and pause. Forget it if none names it for long. */
static void lose(struct bcn_tmq *tmq, const uint8_t *address, uint32_t now_ms)
{
    uint8_t at = tmq->subscriber_count;
    while (at-- > 0u) {
        struct bcn_tmq_subscriber *one = &tmq->subscribers[at];
        if (same_address(one->address, address) == 0) {
            continue;
        }
        if (one->pause_s >= PAUSE_S_MAX && one->named == 0u) {
            forget(tmq, at);
            continue;
        }
        one->pause_s = (uint8_t)(one->pause_s == 0u ? 1u : 2u * one->pause_s);
        if (one->pause_s > PAUSE_S_MAX) {
            one->pause_s = PAUSE_S_MAX;
        }
        one->down_ms = now_ms;
        one->gone = 1u;
        one->named = 0u;
    }
}

static void alive(struct bcn_tmq *tmq, const uint8_t *address)
{
    uint8_t at;
    for (at = 0u; at < tmq->subscriber_count; at++) {
        if (same_address(tmq->subscribers[at].address, address) != 0) {
            tmq->subscribers[at].pause_s = 0u;
        }
    }
}

/* The queue: messages with the address before them */

static int keep(struct bcn_tmq *tmq, const uint8_t *address, const struct message *m)
{
    struct bcn_queue *queue = &tmq->queue;
    const uint16_t size = (uint16_t)(ADDRESS + m->data_end);
    uint16_t at;
    if (size + 2u > (uint16_t)(queue->capacity - queue->used)) {
        return BCN_FULL;
    }
    queue->bytes[queue->used++] = (uint8_t)(size >> 8);
    queue->bytes[queue->used++] = (uint8_t)(size & 255u);
    set_address(queue->bytes + queue->used, address);
    queue->used = (uint16_t)(queue->used + ADDRESS);
    for (at = 0u; at < m->data_end; at++) {
        queue->bytes[queue->used++] = byte_at(m, at);
    }
    return BCN_OK;
}

/* Return where the first message for an address is, or where the queue ends. */
static uint16_t waiting(const struct bcn_tmq *tmq, const uint8_t *address)
{
    const struct bcn_queue *queue = &tmq->queue;
    uint16_t at = 0u;
    while (at < queue->used && same_address(queue->bytes + at + 2u, address) == 0) {
        at = (uint16_t)(at + 2u + number(queue->bytes + at));
    }
    return at;
}

/* Send the message at a place of the queue. */
static void send_queued(struct bcn_tmq *tmq, uint8_t i, uint16_t at, uint32_t now_ms)
{
    const uint8_t *b = tmq->queue.bytes + at;
    struct message m;
    whole(&m, b + 2u + ADDRESS, (uint16_t)(number(b) - ADDRESS));
    say(tmq, i, &m, now_ms);
    if (tmq->links[i].state != (uint8_t)FREE) { /* else all for this address are gone */
        tmq->sent++;
        pull(&tmq->queue, at);
    }
}

/* Move on what waits: write it where there is room, else connect. The messages of an address keep their order. */
static void pump(struct bcn_tmq *tmq, uint32_t now_ms)
{
    uint16_t at = 0u;
    uint8_t i;
    for (i = 0u; i < LINKS; i++) {
        tmq->links[i].stalled = 0u;
    }
    while (at < tmq->queue.used) {
        const uint8_t *b = tmq->queue.bytes + at;
        const uint16_t next = (uint16_t)(at + 2u + number(b)), before = tmq->queue.used;
        i = link_of(tmq, PEER, b + 2u);
        if (i == NOTHING) {
            (void)dial(tmq, PEER, b + 2u, now_ms);
        } else if (tmq->links[i].state == (uint8_t)GREETED && tmq->links[i].stalled == 0u
                   && tmq->driver->room(tmq->context, i) >= number(b) - ADDRESS) {
            send_queued(tmq, i, at, now_ms);
        } else {
            tmq->links[i].stalled = 1u; /* it keeps its connection, and the order */
        }
        at = tmq->queue.used == before ? next : 0u;
    }
}

/* The end of a connection */

/* The link was let go because the other side did not answer. */
static void failed(struct bcn_tmq *tmq, uint8_t i, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    link->state = (uint8_t)FREE;
    if (link->role == (uint8_t)BROKER) {
        move(tmq, now_ms);
    } else if (link->role == (uint8_t)PEER) {
        uint16_t at = waiting(tmq, link->address);
        while (at < tmq->queue.used) {
            pull(&tmq->queue, at);
            tmq->unsent++;
            at = waiting(tmq, link->address);
        }
        lose(tmq, link->address, now_ms);
    } else {
        /* nothing depends on it */
    }
}

void bcn_tmq_closed(struct bcn_tmq *tmq, uint8_t link, uint32_t now_ms)
{
    struct bcn_tmq_link *l = &tmq->links[link];
    const uint8_t state = l->state;
    if (state == (uint8_t)FREE) {
        return;
    }
    l->state = (uint8_t)FREE;
    if (l->used != 0u || l->skip != 0u) {
        tmq->lost++;
    }
    if (l->role <= (uint8_t)TRIAL && state == (uint8_t)ASKING) { /* one of 2015: one packet a connection */
        if (l->role == (uint8_t)TRIAL) {
            promote(tmq, link, now_ms);
        }
        broker_is_up(tmq, 1u);
        want_broker(tmq, now_ms);
    } else if (state == (uint8_t)DIALLING || l->role == (uint8_t)BROKER) {
        failed(tmq, link, now_ms);
    } else {
        pump(tmq, now_ms);
    }
}

int bcn_tmq_accepted(struct bcn_tmq *tmq, uint32_t now_ms)
{
    uint8_t i = NOTHING;
    if (links_in(tmq, CALLER) + 2u < LINKS) {
        i = free_link(tmq, CALLER);
    }
    if (i == NOTHING && make_room(tmq, CALLER, now_ms) != NOTHING) {
        i = free_link(tmq, CALLER);
    }
    if (i == NOTHING) {
        return BCN_FULL;
    }
    begin_link(tmq, i, CALLER, ASKING, now_ms);
    return (int)i;
}

void bcn_tmq_connected(struct bcn_tmq *tmq, uint8_t link, uint32_t now_ms)
{
    struct bcn_tmq_link *l = &tmq->links[link];
    if (l->state != (uint8_t)DIALLING) {
        return;
    }
    l->state = (uint8_t)ASKING;
    l->heard_ms = now_ms;
    if (l->role == (uint8_t)PEER) {
        const uint16_t at = waiting(tmq, l->address);
        alive(tmq, l->address);
        if (at < tmq->queue.used) {
            send_queued(tmq, link, at, now_ms);
        } else {
            let_go(tmq, link);
        }
    } else if (l->role == (uint8_t)BROKER && tmq->each != 0u && due_pattern(tmq) != NOTHING) {
        tell_pattern(tmq, link, due_pattern(tmq), now_ms);
    } else {
        greet(tmq, link, 0u, now_ms);
    }
}

/* Packets that come in */

static void greeted(struct bcn_tmq *tmq, uint8_t i, const uint8_t *data, uint16_t size, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    const uint8_t is_new = link->state != (uint8_t)GREETED ? 1u : 0u;
    if (size < HELLO_MIN || data[0] == 0u) {
        tmq->node.rejected++;
        return;
    }
    link->state = (uint8_t)GREETED;
    link->silence_ms = number(data + 2) != 0u ? number(data + 2) : 0xFFFFu;
    if (is_new != 0u && link->role == (uint8_t)TRIAL) {
        promote(tmq, i, now_ms);
    }
    if (is_new != 0u && link->role == (uint8_t)BROKER) {
        broker_is_up(tmq, 0u);
    }
    if ((data[1] & TMQ_ANSWER) != 0u || (is_new != 0u && link->role == (uint8_t)PEER)) {
        greet(tmq, i, (data[1] & TMQ_ANSWER) != 0u ? (uint8_t)TMQ_ANSWERED : 0u, now_ms);
    }
    tell_broker(tmq, now_ms);
}

static void refused(struct bcn_tmq *tmq, uint8_t i, const uint8_t *data, uint16_t size, uint32_t now_ms)
{
    tmq->refused++;
    if (size == 0u || data[0] == 0u) { /* the whole connection */
        let_go(tmq, i);
        failed(tmq, i, now_ms);
    }
}

/* Take a packet, or the part of it that is there. Return 1 if the rest is more of the same: it is a list. */
static uint8_t take_packet(struct bcn_tmq *tmq, uint8_t i, const uint8_t *b, uint32_t now_ms)
{
    const uint8_t *data = b + (uint16_t)(FRAME_MIN + 4u * b[1]);
    const uint8_t kind = (uint8_t)(b[0] & TMQ_KIND);
    uint8_t is_list = 0u;
    if (kind == TMQ_HELLO) {
        greeted(tmq, i, data, number(b + 2), now_ms);
    } else if (kind == TMQ_REFUSED && tmq->links[i].role <= (uint8_t)TRIAL) {
        refused(tmq, i, data, number(b + 2), now_ms);
    } else if (b[0] == TMQ_MESSAGE) {
        pass_on(&tmq->node, b);
    } else if ((b[0] == TMQ_ADD || b[0] == TMQ_FORGET) && named(tmq, b, data) != 0) {
        is_list = 1u;
    } else {
        tmq->node.rejected++;
    }
    return is_list;
}

/* How much of a packet has to be there before it is taken. A list is taken address by address, and of greetings and
 * refusals only the first bytes matter: none needs a buffer as long as it is. */
static uint16_t part_of(const uint8_t *b, uint16_t size)
{
    const uint16_t part = (uint16_t)(FRAME_MIN + 4u * b[1] + ADDRESS);
    return b[0] == TMQ_MESSAGE || size < part ? size : part;
}

/* The buffer of a link has a packet, or as much as can be taken at once. `left` bytes of it are still to come. */
static void take_part(struct bcn_tmq *tmq, uint8_t i, const uint8_t *b, uint16_t left, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    const uint16_t part = link->used;
    const uint8_t is_new = link->listing == 0u ? 1u : 0u;
    link->used = 0u;
    link->need = FRAME_MIN;
    link->skip = left;
    link->listing = 0u;
    tmq->node.heard = (uint16_t)(tmq->node.heard + is_new);
    if (take_packet(tmq, i, b, now_ms) != 0u && left != 0u) {
        link->listing = 1u;
        link->used = (uint16_t)(part - ADDRESS);
        link->need = part;
    }
}

/* The buffer of a link has the bytes that it needs: a header, or a part of a packet. */
static void complete(struct bcn_tmq *tmq, uint8_t i, uint8_t *b, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    const uint16_t used = link->used, size = frame_size(b, used), part = part_of(b, size);
    const uint8_t is_first = link->role == (uint8_t)CALLER && link->silence_ms == 0u ? 1u : 0u;
    if (size == 0u) {
        tmq->lost++;
        link->used = 0u;
        let_go(tmq, i);
        failed(tmq, i, now_ms);
        return;
    }
    if (part > tmq->capacity) {
        link->used = 0u;
        link->skip = (uint16_t)(size - used);
        tmq->oversize++;
    } else if (used < part) {
        link->need = part;
    } else {
        take_part(tmq, i, b, link->listing != 0u ? (uint16_t)(link->skip - ADDRESS) : (uint16_t)(size - used), now_ms);
    }
    if (is_first != 0u && link->used == 0u && link->state == (uint8_t)ASKING) {
        link->silence_ms = 1u; /* a caller is greeted once, after its first packet */
        greet(tmq, i, 0u, now_ms);
    }
}

void bcn_tmq_feed(struct bcn_tmq *tmq, uint8_t link, const uint8_t *bytes, uint16_t size, uint32_t now_ms)
{
    struct bcn_tmq_link *l = &tmq->links[link];
    uint8_t *b = tmq->buffer + (size_t)tmq->capacity * link;
    uint16_t i;
    for (i = 0u; i < size && l->state >= (uint8_t)ASKING; i++) {
        l->heard_ms = now_ms;
        if (l->skip != 0u && l->listing == 0u) {
            l->skip--;
        } else if (l->used < tmq->capacity) {
            b[l->used++] = bytes[i];
            if (l->used == l->need) {
                complete(tmq, link, b, now_ms);
            }
        } else {
            l->state = (uint8_t)FREE; /* a buffer below what bcn_tmq_init asks for */
        }
    }
    pump(tmq, now_ms);
}

/* Time */

/* How long a link may be silent. */
static uint32_t patience(const struct bcn_tmq_link *link)
{
    uint32_t most_ms = CONNECT_MS;
    if (link->state == (uint8_t)GREETED) {
        most_ms = link->silence_ms;
    } else if (link->role == (uint8_t)CALLER) {
        most_ms = IDLE_MS;
    } else if (link->role == (uint8_t)PEER && link->state == (uint8_t)ASKING) {
        most_ms = VERDICT_MS;
    } else {
        /* a connection that is being made, or a broker's answer */
    }
    return most_ms;
}

static void look_after(struct bcn_tmq *tmq, uint8_t i, uint32_t now_ms)
{
    struct bcn_tmq_link *link = &tmq->links[i];
    if (link->state == (uint8_t)FREE) {
        return;
    }
    if (now_ms - link->heard_ms > patience(link)) {
        const int is_done = (link->role == (uint8_t)PEER && link->state >= (uint8_t)ASKING) ? 1 : 0;
        let_go(tmq, i);
        if (is_done == 0) {
            failed(tmq, i, now_ms);
        }
    } else if (link->state == (uint8_t)GREETED && now_ms - link->said_ms >= HEARTBEAT_MS) {
        greet(tmq, i, 0u, now_ms);
    } else {
        /* it is in order */
    }
}

int bcn_tmq_tick(struct bcn_tmq *tmq, uint32_t now_ms)
{
    uint8_t i;
    for (i = 0u; i < LINKS; i++) {
        look_after(tmq, i, now_ms);
    }
    if (now_ms - tmq->refresh_ms >= REFRESH_MS) {
        tmq->each = 0u; /* ask it again whether it takes many packets */
        all_due(tmq, now_ms);
    }
    if (tmq->at != 0u && tmq->up != 0u && now_ms - tmq->trial_ms >= TRIAL_MS
        && link_of(tmq, TRIAL, NULL) == NOTHING) {
        tmq->trial_ms = now_ms;
        (void)dial(tmq, TRIAL, tmq->brokers, now_ms);
    }
    want_broker(tmq, now_ms);
    tell_broker(tmq, now_ms);
    pump(tmq, now_ms);
    return tmq->up != 0u ? BCN_OK : BCN_SILENT;
}

/* What a program calls */

void bcn_tmq_init(struct bcn_tmq *tmq, const struct bcn_tmq_driver *driver, void *context, const uint8_t *brokers,
                  uint8_t count, const uint8_t *own, uint32_t number_of_it, uint8_t *buffer, uint16_t capacity,
                  uint8_t *queue, uint16_t queue_capacity)
{
    uint8_t i;
    begin(&tmq->node);
    tmq->driver = driver;
    tmq->context = context;
    tmq->brokers = brokers;
    tmq->broker_count = count;
    tmq->number = number_of_it;
    tmq->buffer = buffer;
    tmq->capacity = (uint16_t)(capacity / LINKS);
    tmq->queue.bytes = queue;
    tmq->queue.capacity = queue_capacity;
    tmq->queue.used = 0u;
    tmq->broker_ms = tmq->refresh_ms = tmq->trial_ms = 0u;
    tmq->pause_ms = 0u;
    tmq->sent = tmq->unsent = tmq->unheard = tmq->full = tmq->refused = tmq->oversize = tmq->lost = 0u;
    tmq->at = tmq->up = tmq->each = tmq->subscriber_count = 0u;
    set_address(tmq->own, own);
    for (i = 0u; i < LINKS; i++) {
        tmq->links[i].state = (uint8_t)FREE;
    }
    for (i = 0u; i < PATTERNS; i++) {
        tmq->patterns[i].type = 0u;
    }
}

static int enroll(struct bcn_tmq *tmq, uint8_t type, const uint32_t *tokens, uint8_t count)
{
    struct message head;
    uint8_t i;
    (void)frame(&head, tokens, count, NULL, 0u);
    i = pattern_of(tmq, type, &head);
    if (i == NOTHING) { /* it may still be taken back */
        i = pattern_of(tmq, (uint8_t)(type | TMQ_REMOVE), &head);
    }
    if (i == NOTHING) {
        i = 0u;
        while (i < PATTERNS && tmq->patterns[i].type != 0u) {
            i++;
        }
    }
    if (i >= PATTERNS) {
        return BCN_FULL;
    }
    tmq->patterns[i].tokens = tokens;
    tmq->patterns[i].count = count;
    tmq->patterns[i].type = type;
    tmq->patterns[i].due = 1u;
    return BCN_OK;
}

static uint8_t withdraw(struct bcn_tmq *tmq, uint8_t type, const uint32_t *tokens, uint8_t count)
{
    struct message head;
    uint8_t i;
    (void)frame(&head, tokens, count, NULL, 0u);
    i = pattern_of(tmq, type, &head);
    if (i != NOTHING) { /* what no broker knows, and one of 2015 does not understand, is not said */
        tmq->patterns[i].type = tmq->up != 0u && tmq->each == 0u ? (uint8_t)(type | TMQ_REMOVE) : 0u;
        tmq->patterns[i].due = 1u;
    }
    return i;
}

int bcn_tmq_subscribe(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context)
{
    if (tmq->node.subscriptions >= (uint8_t)BCN_SUBSCRIPTIONS
        || enroll(tmq, TMQ_SUBSCRIBE, tokens, count) != BCN_OK) {
        return BCN_FULL;
    }
    return bcn_subscribe(&tmq->node, tokens, count, callback, context);
}

int bcn_tmq_declare(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count)
{
    if (FRAME_MIN + 4u * count + ADDRESS > tmq->capacity) {
        return BCN_TOO_LONG;
    }
    return enroll(tmq, TMQ_PUBLISH, tokens, count);
}

void bcn_tmq_unsubscribe(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count)
{
    const uint8_t found_at = withdraw(tmq, TMQ_SUBSCRIBE, tokens, count);
    uint8_t i, left = 0u;
    for (i = 0u; found_at != NOTHING && i < tmq->node.subscriptions; i++) {
        const struct bcn_subscription *call = &tmq->node.calls[i];
        uint8_t same_tokens = 0u;
        while (call->count == count && same_tokens < count && call->tokens[same_tokens] == tokens[same_tokens]) {
            same_tokens++;
        }
        if (call->count != count || same_tokens != count) {
            tmq->node.calls[left++] = *call;
        }
    }
    if (found_at != NOTHING) {
        tmq->node.subscriptions = left;
    }
}

void bcn_tmq_undeclare(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count)
{
    const uint8_t found_at = withdraw(tmq, TMQ_PUBLISH, tokens, count);
    if (found_at != NOTHING) {
        forget_pattern(tmq, found_at);
    }
}

int bcn_tmq_publish(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size,
                    uint32_t now_ms)
{
    struct message m;
    uint8_t pattern, i, heard = 0u;
    int result = BCN_OK;
    if (frame(&m, tokens, count, data, size) != BCN_OK) {
        return BCN_TOO_LONG;
    }
    m.type = TMQ_MESSAGE;
    pattern = pattern_of(tmq, TMQ_PUBLISH, &m);
    for (i = 0u; i < tmq->subscriber_count; i++) {
        const struct bcn_tmq_subscriber *one = &tmq->subscribers[i];
        if (one->pattern == pattern) {
            const int taken = is_down(one, now_ms) ? BCN_UNSENT : keep(tmq, one->address, &m);
            heard = 1u;
            tmq->unsent = (uint16_t)(tmq->unsent + (taken != BCN_OK ? 1u : 0u));
            result = taken != BCN_OK ? taken : result;
        }
    }
    if (heard == 0u) {
        tmq->unheard++;
        return BCN_UNHEARD;
    }
    pump(tmq, now_ms);
    return result;
}
#endif

/* The mailbox */

#if BCN_I2C
#define SEGMENT 30u
#define BOX_SOT 0x80u
#define BOX_EOT 0x40u
#define BOX_TOG 0x20u
#define BOX_ACK 0x10u
#define BOX_EPOCH 0x0Fu
#define FROM_N 0x1Eu /* n and ctl of the controller; its data end at n */
#define FROM_CTL 0x1Fu
#define TO_CTL 0x20u
#define TO_N 0x21u
#define TO_DATA 0x22u
#define BOX_SIZE 64u
#define STALL_MS 2000u

void bcn_i2c_init(struct bcn_i2c *box, volatile uint8_t *memory, uint8_t *buffer, uint16_t capacity, uint8_t *queue,
                  uint16_t queue_capacity)
{
    uint8_t i;
    begin(&box->node);
    box->memory = memory;
    box->buffer = buffer;
    box->capacity = capacity;
    box->queue.bytes = queue;
    box->queue.capacity = queue_capacity;
    box->queue.used = 0u;
    box->waits_ms = box->sending_crc = 0u;
    box->used = box->at = 0u;
    box->orphan = box->unfinished = box->oversize = box->too_short = box->crc = box->reset = box->unsent = 0u;
    box->epoch = box->epoch_before = box->busy = box->placed = box->toggle = 0u;
    box->ack = box->open = box->skipping = 0u;
    for (i = 0u; i < BOX_SIZE; i++) {
        memory[i] = 0u;
    }
}

int bcn_i2c_publish(struct bcn_i2c *box, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    struct message m;
    return frame(&m, tokens, count, data, size) != BCN_OK ? BCN_TOO_LONG : push(&box->queue, &m);
}

int bcn_i2c_pending(const struct bcn_i2c *box)
{
    return box->epoch == 0u || box->placed != 0u;
}

static void sent(struct bcn_i2c *box)
{
    pop(&box->queue);
    box->busy = 0u;
}

/* Begin an epoch. A transfer that has begun is lost, in both directions: no end knows how much of it arrived. */
static void epoch(struct bcn_i2c *box, uint8_t number_of_it)
{
    box->epoch = number_of_it;
    if (box->busy != 0u && (box->placed != 0u || box->at != 0u)) {
        sent(box);
        box->unsent++;
    }
    if (box->open != 0u) {
        box->reset++;
    }
    box->placed = box->toggle = box->ack = box->open = box->skipping = 0u;
    box->used = 0u;
}

/* Make the next message or segment ready. */
static void place(struct bcn_i2c *box, uint32_t now_ms)
{
    struct message m;
    if (box->busy == 0u && box->queue.used != 0u) {
        first(&box->queue, &m);
        seal(&m);
        box->sending_crc = m.crc;
        box->at = 0u;
        box->busy = 1u;
        box->waits_ms = now_ms;
    }
    if (box->busy != 0u && box->placed == 0u) {
        box->placed = 1u;
        box->toggle ^= BOX_TOG;
    }
}

static uint16_t sending_end(const struct bcn_i2c *box)
{
    return (uint16_t)(number(box->queue.bytes) + CRC_SIZE);
}

/* Note what the controller has taken (`ack` is its bit in the place of TOG), and go on. */
static void acknowledged(struct bcn_i2c *box, uint8_t ack, uint32_t now_ms)
{
    if (box->placed == 0u && ack != box->toggle) {
        epoch(box, 0u); /* it took a segment that was not there: it shall begin again */
        return;
    }
    if (box->placed != 0u && ack == box->toggle) {
        box->placed = 0u;
        box->at = (uint16_t)(box->at + SEGMENT);
        box->waits_ms = now_ms;
        if (box->at >= sending_end(box)) {
            sent(box);
        }
    }
    place(box, now_ms);
}

/* Show our segment: ctl last, so that no part of a change is seen. */
static void show(const struct bcn_i2c *box)
{
    uint8_t ctl = (uint8_t)(box->toggle | box->ack >> 1 | box->epoch), n = 0u;
    if (box->placed != 0u) {
        const uint16_t end = sending_end(box);
        struct message m;
        first(&box->queue, &m);
        m.crc = box->sending_crc;
        while (n < SEGMENT && box->at + n < end) {
            box->memory[TO_DATA + n] = byte_at(&m, (uint16_t)(box->at + n));
            n++;
        }
        if (box->at == 0u) {
            ctl |= BOX_SOT;
        }
        if (box->at + n == end) {
            ctl |= BOX_EOT;
        }
    }
    box->memory[TO_N] = n;
    box->memory[TO_CTL] = ctl;
}

/* Count a transfer that gave no message. */
static void reject(struct bcn_i2c *box, uint16_t *count)
{
    (*count)++;
    box->open = 0u;
}

static uint16_t completed(struct bcn_i2c *box)
{
    if (box->used < FRAME_MIN + CRC_SIZE) {
        reject(box, &box->too_short);
    } else if (crc_of(box->buffer, box->used) != CRC_RESIDUE) {
        reject(box, &box->crc);
    } else {
        box->open = 0u;
        return (uint16_t)(box->used - CRC_SIZE);
    }
    return 0u;
}

/* Tell whether a segment belongs to a transfer whose start was taken. */
static int opened(struct bcn_i2c *box, uint8_t ctl)
{
    if ((ctl & BOX_SOT) != 0u) {
        if (box->open != 0u) {
            box->unfinished++;
        }
        box->open = 1u;
        box->used = 0u;
        box->skipping = 0u;
    } else if (box->open == 0u && (ctl & BOX_EOT) != 0u) {
        if (box->skipping == 0u) {
            box->orphan++;
        }
        box->skipping = 0u;
    } else {
        /* in the middle */
    }
    return box->open != 0u;
}

/* Take a segment; return the length of the message that it completes, or 0. */
static uint16_t segment(struct bcn_i2c *box, uint8_t ctl, uint8_t n)
{
    uint8_t i;
    box->ack ^= BOX_TOG;
    if (opened(box, ctl) == 0) {
        return 0u;
    }
    if (n > (uint16_t)(box->capacity - box->used)) {
        box->skipping = ((ctl & BOX_EOT) == 0u) ? 1u : 0u;
        reject(box, &box->oversize);
        return 0u;
    }
    for (i = 0u; i < n; i++) {
        box->buffer[box->used++] = box->memory[FROM_N - n + i];
    }
    return (ctl & BOX_EOT) != 0u ? completed(box) : 0u;
}

void bcn_i2c_poll(struct bcn_i2c *box, uint32_t now_ms)
{
    const uint8_t ctl = box->memory[FROM_CTL], n = box->memory[FROM_N];
    uint16_t size = 0u;
    if (n == 0u && ctl != 0u && ctl <= BOX_EPOCH && ctl != box->epoch_before) {
        epoch(box, ctl);
        box->epoch_before = ctl;
    }
    if (box->epoch != 0u && (ctl & BOX_EPOCH) == box->epoch) {
        acknowledged(box, (uint8_t)((ctl & BOX_ACK) << 1), now_ms);
        if (box->epoch != 0u && n != 0u && n <= SEGMENT && (ctl & BOX_TOG) != box->ack) {
            size = segment(box, ctl, n);
        }
    }
    if (box->busy != 0u && now_ms - box->waits_ms >= STALL_MS) {
        epoch(box, 0u);
    }
    show(box);
    if (size != 0u) {
        deliver(&box->node, box->buffer, size);
    }
}
#endif
