# Says what the input holds on every descriptor that takes it: O-17, O-18.
import base64

said = base64.b64decode(given()["said"])
for _ in range(given()["times"]):
    os.write(2, said)
    os.write(1, said)
verdicts["other descriptors"] = [number for number in range(3, 64) if attempt(os.write, number, said) == "ok"]
conclude()
