"""A user's test of a plant without hardware: `pytest examples/simulated`, where buscoupler is installed."""

pytest_plugins = ["appliance.simulated.plugin"]


def test_a_program_hears_the_motor_also_after_its_gateway_has_failed(plant):
    here = plant("plant.yaml")
    assert here.active("motor") == ["gw-a"]
    here.send("can0", "motor/speed", b"1500")
    assert here.expect("hall", "motor").data == b"1500"

    here.fail("gw-a")
    here.wait(5)  # seconds of the simulation: no time passes for whoever runs the test
    assert here.active("motor") == ["gw-b"]
    here.send("can0", "motor/speed", b"1600")
    here.expect("hall", "motor/speed", b"1600")


def test_nothing_comes_while_the_cable_is_cut(plant):
    here = plant("plant.yaml")
    here.cut("can0")
    here.send("can0", "motor/speed", b"1")
    here.expect_nothing("hall")
    here.mend("can0")
    here.wait(5)
    here.send("hall", "motor/stop", b"now")
    here.expect("can0", "motor/stop", b"now")
