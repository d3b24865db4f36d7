/* See buscoupler_node.h. */
#include "buscoupler_node.h"

#define DATA_MAX 2048u
#define FRAME_MIN 4u
#define ENVELOPE 12u
#define CRC_SIZE 4u
#define RUN 254u

static const uint32_t crc_table[16] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};

static uint32_t crc_step(uint32_t crc, uint8_t byte)
{
    crc = (crc >> 4) ^ crc_table[(crc ^ byte) & 15u];
    return (crc >> 4) ^ crc_table[(crc ^ ((uint32_t)byte >> 4)) & 15u];
}

struct message {
    const uint32_t *tokens;
    const uint8_t *data;
    uint32_t crc;
    uint16_t size, tokens_end, data_end;
    uint8_t count;
};

static uint8_t byte_at(const struct message *m, uint16_t at)
{
    if (at < FRAME_MIN) {
        const uint8_t head[4] = {BCN_PUB, m->count, (uint8_t)(m->size >> 8), (uint8_t)(m->size & 255u)};
        return head[at];
    }
    if (at < m->tokens_end) {
        return (uint8_t)((m->tokens[(at >> 2) - 1u] >> (8u * (3u - (at & 3u)))) & 255u);
    }
    if (at < m->data_end) {
        return m->data[at - m->tokens_end];
    }
    return (uint8_t)((m->crc >> (8u * (uint16_t)(at - m->data_end))) & 255u);
}

static void put(const struct bcn_node *node, uint8_t byte)
{
    node->write(node->context, &byte, 1u);
}

void bcn_init(struct bcn_node *node, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity)
{
    node->write = write;
    node->context = context;
#if BCN_RECEIVE
    node->buffer = buffer;
    node->capacity = capacity;
    node->used = node->cobs = node->too_short = node->crc = node->oversize = node->rejected = 0u;
    node->left = node->begun = node->skipping = node->subscriptions = 0u;
    node->full = 1u;
#else
    (void)buffer;
    (void)capacity;
#endif
}

static void send(const struct bcn_node *node, const struct message *m)
{
    const uint16_t end = (uint16_t)(m->data_end + CRC_SIZE);
    uint16_t at = 0u;
    put(node, 0u);
    for (;;) {
        uint16_t n = 0u, i;
        while (n < RUN && at + n < end && byte_at(m, (uint16_t)(at + n)) != 0u) {
            n++;
        }
        put(node, (uint8_t)(n + 1u));
        for (i = 0u; i < n; i++) {
            put(node, byte_at(m, (uint16_t)(at + i)));
        }
        at = (uint16_t)(at + n);
        if (at == end) {
            break;
        }
        if (n < RUN) {
            at++; /* the zero that this block stands for */
        }
    }
    put(node, 0u);
}

int bcn_publish(struct bcn_node *node, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    struct message m;
    uint16_t at;
    if (size > DATA_MAX) {
        return -1;
    }
    m.tokens = tokens;
    m.data = data;
    m.size = size;
    m.count = count;
    m.tokens_end = (uint16_t)(FRAME_MIN + 4u * count);
    m.data_end = (uint16_t)(m.tokens_end + size);
    m.crc = 0xFFFFFFFFu;
    for (at = 0u; at < m.data_end; at++) {
        m.crc = crc_step(m.crc, byte_at(&m, at));
    }
    m.crc ^= 0xFFFFFFFFu;
    send(node, &m);
    return 0;
}

#if BCN_RECEIVE
int bcn_subscribe(struct bcn_node *node, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context)
{
    struct bcn_subscription *call;
    if (node->subscriptions >= BCN_SUBSCRIPTIONS) {
        return -1;
    }
    call = &node->calls[node->subscriptions++];
    call->tokens = tokens;
    call->count = count;
    call->callback = callback;
    call->context = context;
    return 0;
}

uint32_t bcn_token(const uint8_t *tokens, uint8_t index)
{
    const uint8_t *b = tokens + 4u * (uint16_t)index;
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

static void deliver(struct bcn_node *node, uint16_t length)
{
    const uint8_t *b = node->buffer;
    uint16_t size;
    uint8_t i;
    if (length > ENVELOPE && b[0] == 0xE1u && b[2] > 0xEFu) {
        length = (uint16_t)(length - ENVELOPE);
        if (b[1] > 15u || (uint16_t)((b[2] & 15u) << 8 | b[3]) != length) {
            node->rejected++;
            return;
        }
        b += ENVELOPE;
    }
    size = length < FRAME_MIN ? 0xFFFFu : (uint16_t)((uint16_t)b[2] << 8 | b[3]);
    if (size > DATA_MAX || FRAME_MIN + 4u * b[1] + size != length) {
        node->rejected++;
        return;
    }
    for (i = 0u; i < node->subscriptions; i++) {
        if (starts(&node->calls[i], b + FRAME_MIN, b[1])) {
            node->calls[i].callback(node->calls[i].context, b + FRAME_MIN, b[1], b + (length - size), size);
        }
    }
}

static void ended(struct bcn_node *node)
{
    uint32_t crc = 0xFFFFFFFFu;
    uint16_t i;
    if (node->left != 0u) {
        node->cobs++;
    } else if (node->used < FRAME_MIN + CRC_SIZE) {
        node->too_short++;
    } else {
        for (i = 0u; i < node->used; i++) {
            crc = crc_step(crc, node->buffer[i]);
        }
        if (crc != 0xDEBB20E3u) { /* before the final xor: 2144DF1C after it */
            node->crc++;
        } else {
            deliver(node, (uint16_t)(node->used - CRC_SIZE));
        }
    }
}

static void hold(struct bcn_node *node, uint8_t byte)
{
    if (node->used < node->capacity) {
        node->buffer[node->used++] = byte;
    } else {
        node->skipping = 1u;
        node->oversize++;
    }
}

static void take(struct bcn_node *node, uint8_t byte)
{
    node->begun = 1u;
    if (node->left != 0u) {
        node->left--;
        hold(node, byte);
        return;
    }
    if (!node->full) {
        hold(node, 0u);
    }
    node->full = (uint8_t)(byte == 255u);
    node->left = (uint8_t)(byte - 1u);
}

void bcn_feed(struct bcn_node *node, const uint8_t *bytes, uint16_t size)
{
    uint16_t i;
    for (i = 0u; i < size; i++) {
        if (bytes[i] != 0u) {
            if (!node->skipping) {
                take(node, bytes[i]);
            }
            continue;
        }
        if (node->begun && !node->skipping) {
            ended(node);
        }
        node->used = 0u;
        node->left = node->begun = node->skipping = 0u;
        node->full = 1u;
    }
}
#endif
