// A thermometer at a serial line: it publishes greenhouse/temp once a second, from a TMP36 at A0.
// The gateway: uart: {port: /dev/ttyACM0, baud: 115200}
#include <buscoupler_node.h>

static const uint32_t TEMP[] = {BCN_TOKEN("greenhouse"), BCN_TOKEN("temp")};

static bcn_uart uart;
static uint8_t buffer[64];
static uint32_t due_ms;

static int to_line(void *, const uint8_t *bytes, uint16_t size)
{
    return Serial.write(bytes, size) == size ? 0 : 1;
}

void setup()
{
    Serial.begin(115200);
    bcn_uart_init(&uart, to_line, nullptr, buffer, sizeof buffer);
}

void loop()
{
    char text[12];
    if (static_cast<int32_t>(millis() - due_ms) >= 0) {
        due_ms += 1000;
        const int32_t millivolts = analogRead(A0) * 5000L / 1024;
        ltoa((millivolts - 500) / 10, text, 10); // degrees Celsius
        bcn_uart_publish(&uart, TEMP, 2, reinterpret_cast<const uint8_t *>(text), strlen(text));
    }
}
