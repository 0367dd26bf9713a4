export { Lexer, type Token, type Tokens, type TokensList } from "marked";
