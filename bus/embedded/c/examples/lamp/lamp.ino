// A lamp on a shared pair (RS-485), as node 5: greenhouse/lamp switches it, and it tells its state.
// The gateway: rs485: {port: /dev/ttyUSB0, baud: 115200, nodes: [5]}
#include <buscoupler_node.h>

static const uint32_t LAMP[] = {BCN_TOKEN("greenhouse"), BCN_TOKEN("lamp")};
static const uint32_t STATE[] = {BCN_TOKEN("greenhouse"), BCN_TOKEN("lamp-state")};
static const uint8_t NODE = 5, DRIVE = 2; // DRIVE: the pin of the transceiver's DE and /RE

static bcn_rs485 pair;
static uint8_t buffer[64], queue[64];

static int to_pair(void *, const uint8_t *bytes, uint16_t size)
{
    return Serial.write(bytes, size) == size ? 0 : 1;
}

static void on_lamp(void *, const uint8_t *, uint8_t, const uint8_t *data, uint16_t size)
{
    const uint8_t on = size > 0 && data[0] == '1' ? '1' : '0';
    digitalWrite(LED_BUILTIN, on == '1' ? HIGH : LOW);
    bcn_rs485_publish(&pair, STATE, 2, &on, 1);
}

void setup()
{
    pinMode(LED_BUILTIN, OUTPUT);
    pinMode(DRIVE, OUTPUT);
    Serial.begin(115200);
    bcn_rs485_init(&pair, to_pair, nullptr, buffer, sizeof buffer, NODE, 0, queue, sizeof queue);
    bcn_subscribe(&pair.uart.node, LAMP, 2, on_lamp, nullptr);
}

void loop()
{
    while (Serial.available() > 0) {
        const uint8_t byte = static_cast<uint8_t>(Serial.read());
        bcn_rs485_feed(&pair, &byte, 1, millis());
    }
    if (bcn_rs485_due(&pair, millis())) {
        digitalWrite(DRIVE, HIGH);
        bcn_rs485_answer(&pair, millis());
        Serial.flush();
        digitalWrite(DRIVE, LOW);
    }
}
