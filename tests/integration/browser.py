# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a page of flightrec-report in Chromium without a window, and acts as its user."""
import json
import shutil
from pathlib import Path


def missing():
    """Returns a text about what this machine lacks, or None."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no selenium: the package python3-selenium is missing"
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        return "no Chromium: the packages chromium and chromium-driver are missing"
    return None


class Browser:
    """A Chromium, which shows one page after the other."""

    def __init__(self, width=1300, height=1500, script=True):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     f"--window-size={width},{height}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        if not script:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.url = None

    def open(self, path):
        self.url = Path(path).resolve().as_uri()
        self.driver.get(self.url)
        return self

    def run(self, script, *args):
        """Runs JavaScript, waits until the page has drawn what it changed, and returns its result."""
        result = self.driver.execute_script(script, *args)
        self.settle()
        return result

    def settle(self):
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.find(selector).text

    def keys(self, selector, *keys):
        """Sends keys to an element."""
        self.run("arguments[0].focus()", self.find(selector))
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)
        self.settle()

    def chord(self, modifier, key):
        from selenium.webdriver import ActionChains
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()
        self.settle()

    def drag(self, selector, x_from, x_to, y=10):
        """Drags the mouse over an element. X_FROM and X_TO are pixels from its left side."""
        from selenium.webdriver import ActionChains
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        left, top = element.size["width"] / 2, element.size["height"] / 2  # the mouse starts from the middle
        ActionChains(self.driver).move_to_element_with_offset(element, int(x_from - left), int(y - top)).click_and_hold() \
            .move_by_offset(int((x_to - x_from) / 2), 0).move_by_offset(int((x_to - x_from) / 2), 0).release().perform()
        self.settle()

    def choose(self, title):
        """Chooses an event by its title."""
        self.run("""const s = document.getElementById("event"), o = [...s.options].find((o) => o.textContent === arguments[0]);
                    s.value = o.value; s.dispatchEvent(new Event("change"));""", title)

    def write(self, selector, text):
        element = self.find(selector)
        element.clear()
        element.send_keys(text)
        # An empty field is told to the page, too.
        self.run("arguments[0].dispatchEvent(new Event('input'))", element)

    def rows(self):
        """Returns the texts of the cells of the table."""
        return self.run("return [...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => c.textContent))")

    def media(self, scheme, media=""):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.settle()

    def complaints(self):
        """Returns the messages of the console, and the requests for anything but the page itself, since the last call."""
        found = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                # The empty icon is in the page itself; so it is no request to anywhere.
                if url not in (self.url, "data:,") and not url.startswith("chrome"):
                    found.append(f"request: {url}")
        return found

    def resize(self, width, height):
        """Sets the size of the page, without the frame of the window."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.settle()

    def shoot(self, path):
        self.driver.save_screenshot(str(path))

    def close(self):
        self.driver.quit()
