document.getElementById("app").textContent = "Skillbox";
