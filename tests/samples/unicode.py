print("größe 😀 日本語")
print("half a pair: \ud83d")
"naïve 😀"
