/* A node on CAN, for Zephyr: it publishes greenhouse/uptime once a second, and prints greenhouse/show.
 * The gateway: can: {channel: can0} */
#include <buscoupler_node.h>
#include <zephyr/device.h>
#include <zephyr/drivers/can.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#define NODE_ID 5
#define SUBJECT_ID 0x1234
#define GREENHOUSE 0xB5E7A61Au /* python -m bus.embedded.tokens greenhouse uptime show */
#define UPTIME 0x22EA2D02u
#define SHOW 0x1A3537C8u

static const uint32_t uptime[] = {GREENHOUSE, UPTIME};
static const uint32_t show[] = {GREENHOUSE, SHOW};
static const struct device *const controller = DEVICE_DT_GET(DT_CHOSEN(zephyr_canbus));
static struct bcn_can can;
static uint8_t buffer[2 * 128];

CAN_MSGQ_DEFINE(received, 16);

static int to_bus(void *context, uint32_t identifier, const uint8_t *bytes, uint8_t size)
{
    struct can_frame frame = {.flags = CAN_FRAME_IDE, .id = identifier, .dlc = can_bytes_to_dlc(size)};
    (void)context;
    for (uint8_t i = 0; i < size; i++) {
        frame.data[i] = bytes[i];
    }
    return can_send(controller, &frame, K_MSEC(100), NULL, NULL); /* waits until it is sent */
}

static void on_show(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size)
{
    (void)context;
    (void)tokens;
    (void)count;
    printk("%.*s\n", (int)size, (const char *)data);
}

int main(void)
{
    const struct can_filter subject = {
        .flags = CAN_FILTER_IDE, .id = SUBJECT_ID << 8, .mask = 0x1FFFu << 8};
    struct can_frame frame;
    int64_t due_ms = 0;
    bcn_can_init(&can, to_bus, NULL, NODE_ID, 0, buffer, sizeof buffer);
    (void)bcn_subscribe(&can.node, show, 2, on_show, NULL);
    (void)can_add_rx_filter_msgq(controller, &received, &subject);
    (void)can_start(controller);
    for (;;) {
        const uint32_t seconds = (uint32_t)(k_uptime_get() / 1000);
        const uint8_t data[4] = {(uint8_t)(seconds >> 24), (uint8_t)(seconds >> 16), (uint8_t)(seconds >> 8),
                                 (uint8_t)seconds};
        if (k_uptime_get() >= due_ms) {
            due_ms += 1000;
            (void)bcn_can_publish(&can, uptime, 2, data, 4);
        }
        if (k_msgq_get(&received, &frame, K_MSEC(10)) == 0) {
            bcn_can_feed(&can, frame.id, frame.data, can_dlc_to_bytes(frame.dlc), k_uptime_get_32());
        }
    }
}
