#!/usr/bin/env bash
# Triages a log: counts levels, groups problems by normalised message, draws a timeline.
# Needs bash >= 4.4 and `sort`; the same with GNU coreutils and BusyBox.
set -euo pipefail
shopt -s extglob
# Use bytes, not characters: patterns stay fast, and invalid UTF-8 causes no error.
export LC_ALL=C

readonly GROUPS_MAX=20000 BUCKETS_MAX=500 EXAMPLE_BYTES_MAX=300
tab=$'\t'

fail() {
  printf 'log-triage: %s\n' "$1" >&2
  exit 1
}

# ---- input: a flat JSON object -------------------------------------------------------------------------------

# utf8 HEX: sets $char to the UTF-8 bytes of a code point.
utf8() {
  local code=$((16#$1)) octets
  if ((code < 0x80)); then
    printf -v octets '\\x%02x' "$code"
  elif ((code < 0x800)); then
    printf -v octets '\\x%02x\\x%02x' $((0xC0 | code >> 6)) $((0x80 | code & 63))
  elif ((code < 0x10000)); then
    printf -v octets '\\x%02x\\x%02x\\x%02x' $((0xE0 | code >> 12)) $((0x80 | code >> 6 & 63)) $((0x80 | code & 63))
  else
    printf -v octets '\\x%02x\\x%02x\\x%02x\\x%02x' \
      $((0xF0 | code >> 18)) $((0x80 | code >> 12 & 63)) $((0x80 | code >> 6 & 63)) $((0x80 | code & 63))
  fi
  printf -v char '%b' "$octets"
}

# decode RAW: sets $decoded to a JSON string's text. Splits at backslashes and joins once, because each append to one
# long string would copy it.
decode() {
  local -a parts=() out=()
  local part code high='' verbatim=''
  mapfile -d \\ -t parts <<<"$1"
  # The here-string appends a line feed.
  parts[-1]=${parts[-1]%$'\n'}
  out=("${parts[0]}")
  for part in "${parts[@]:1}"; do
    if [[ $verbatim ]]; then
      out+=("$part") verbatim=''
      continue
    fi
    if [[ $high && $part != u* ]]; then
      out+=($'\xEF\xBF\xBD') high=''
    fi
    case $part in
      '') out+=(\\) verbatim=1 ;;
      n*) out+=($'\n'"${part:1}") ;;
      t*) out+=($'\t'"${part:1}") ;;
      r*) out+=($'\r'"${part:1}") ;;
      b*) out+=($'\b'"${part:1}") ;;
      f*) out+=($'\f'"${part:1}") ;;
      '"'* | /*) out+=("$part") ;;
      u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]*)
        code=${part:1:4} char=''
        if [[ $high && $code == [dD][c-fC-F]* ]]; then
          printf -v code '%x' $((0x10000 + ((16#$high & 0x3FF) << 10) + (16#$code & 0x3FF)))
          high=''
        elif [[ $high ]]; then
          out+=($'\xEF\xBF\xBD') high=''
        fi
        if [[ $code == [dD][89abAB]?? && ${part:5} == '' ]]; then
          high=$code
        elif [[ $code == [dD][89a-fA-F]?? || $code == 0000 ]]; then
          out+=($'\xEF\xBF\xBD'"${part:5}")
        else
          utf8 "$code"
          out+=("$char${part:5}")
        fi
        ;;
      *) fail "the input is not JSON: unknown escape \\${part:0:1}" ;;
    esac
  done
  [[ ! $high ]] || out+=($'\xEF\xBF\xBD')
  printf -v decoded '%s' "${out[@]}"
}

# read_input: sets ${given[name]} for every member. Quotes split the text into pieces alternately outside and inside strings.
read_input() {
  local -a pieces=() held=()
  local piece string tail name='' inside='' wants=open
  mapfile -d '"' -t pieces <"$SANDBOX_INPUT_FILE" || fail "the input cannot be read"
  local last=$((${#pieces[@]} - 1)) index=-1
  for piece in "${pieces[@]}"; do
    index=$((index + 1))
    if [[ $inside ]]; then
      held+=("$piece")
      tail=${piece##*[!\\]}
      if ((${#tail} % 2 == 1)); then
        ((index < last)) || fail "the input is not JSON: a string does not end"
        continue
      fi
      ((index < last)) || fail "the input is not JSON: a string does not end"
      # Join pieces that were split at an escaped quote.
      printf -v string '%s"' "${held[@]}"
      decode "${string%\"}"
      if [[ $wants == key ]]; then
        # Only plain names may become subscripts; other members are ignored.
        name=ignored wants=colon
        [[ $decoded == *[!a-z]* || ! $decoded ]] || name=$decoded
      else
        given[$name]=$decoded wants=comma
      fi
      inside='' held=()
      continue
    fi
    outside "$piece"
    inside=1
  done
  [[ $wants == end ]] || fail "the input must be a flat JSON object such as {\"log\": \"…\"}"
}

# outside TEXT: parses the text between two strings of a flat object: braces, colon, comma, numbers.
outside() {
  local text=${1//[$' \t\r\n']/}
  while [[ $text ]]; do
    case $wants:$text in
      open:'{'*) wants=first text=${text:1} ;;
      first:'}'* | comma:'}'*) wants=end text=${text:1} ;;
      comma:,*) wants=key text=${text:1} ;;
      colon::*) wants=value text=${text:1} ;;
      value:null*) text=${text:4} wants=comma ;;
      value:[-0-9]*)
        [[ $name != @(log|path) ]] || fail "$name must be a string"
        given[$name]=${text%%[,\}]*}
        text=${text#"${given[$name]}"} wants=comma
        ;;
      *) fail "the input must be a flat JSON object of strings and whole numbers; found '${text:0:20}'" ;;
    esac
  done
  [[ $wants != first ]] || wants=key
  # A string follows, unless the object is complete.
  [[ $wants == @(key|value|end) ]] || fail "the input is not a flat JSON object: a string stands where none can"
}

# ---- log line ------------------------------------------------------------------------------------------------

declare -A MONTHS=([Jan]=01 [Feb]=02 [Mar]=03 [Apr]=04 [May]=05 [Jun]=06 [Jul]=07 [Aug]=08 [Sep]=09 [Oct]=10 [Nov]=11 [Dec]=12)
readonly ISO='^\[?([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2}([.,][0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?\]?'
readonly CLF='\[([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9]{2}:[0-9]{2}):[0-9]{2}( [+-][0-9]{4})?\]'

# find_time LINE: sets $seen (as written), $stamp (sortable, to the minute) and $rest (the line without it).
find_time() {
  seen='' stamp='' rest=$1
  local head=${1:0:200}
  if [[ $head =~ $ISO ]]; then
    seen=${BASH_REMATCH[0]} stamp=${BASH_REMATCH[1]}T${BASH_REMATCH[2]}
  elif [[ $head == *'['[0-9][0-9]/* && $head =~ $CLF && ${MONTHS[${BASH_REMATCH[2]}]:-} ]]; then
    seen=${BASH_REMATCH[0]} stamp=${BASH_REMATCH[3]}-${MONTHS[${BASH_REMATCH[2]}]}-${BASH_REMATCH[1]}T${BASH_REMATCH[4]}
  else
    return 0
  fi
  rest=${1/"$seen"/}
  seen=${seen#\[} seen=${seen%\]}
}

# level_of WORD: sets $level if the word names a level.
level_of() {
  case $1 in
    fatal | critical | crit | emergency | emerg | alert | panic) level=fatal ;;
    error | err | severe) level=error ;;
    warn | warning) level=warn ;;
    info | notice | information) level=info ;;
    debug) level=debug ;;
    trace | verbose) level=trace ;;
    *) return 1 ;;
  esac
}

readonly FIELD='"?(level|severity|lvl)"?[=:] ?"?([A-Za-z]+)'

# find_level TEXT: sets $level, and $rest without the word if it is a separate word.
find_level() {
  level=other
  local -a words=()
  local word bare
  if [[ ($1 == *level* || $1 == *severity* || $1 == *lvl*) && ${1:0:400} =~ $FIELD ]] && level_of "${BASH_REMATCH[2],,}"; then
    return 0
  fi
  read -r -a words <<<"${1:0:160}" || true
  for word in "${words[@]:0:6}"; do
    # Accept `[error]`, `ERROR:`, `<warn>`, but not `error_count=0` or a word of a sentence.
    bare=${word##[\[(<]} bare=${bare%%[:,]} bare=${bare%%[\])>]} bare=${bare%%[:,]}
    if [[ $bare == "${bare^^}" || $word != "$bare" || $word == "${words[0]}" ]] && level_of "${bare,,}"; then
      rest=${1/"$word"/}
      return 0
    fi
  done
}

readonly IP='^[^0-9]*[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?[^0-9]*$'
readonly UUID='[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}'
readonly HEX='(0x[0-9a-fA-F]+|[0-9a-fA-F]*[0-9][a-fA-F]+[0-9a-fA-F]*[0-9][0-9a-fA-F]*)'

readonly MESSAGE='"(msg|message|error|event)" ?: ?"([^"]+)"'

# normalise TEXT: sets $message, with placeholders for the parts that vary between similar lines.
normalise() {
  local text=${1:0:400} word at
  local -a words=()
  message=''
  # In a JSON line, the message describes the event; the other members are context.
  if [[ $text == '{'* && $1 =~ $MESSAGE ]]; then text=${BASH_REMATCH[2]:0:400}; fi
  # Quoted values vary. Split at quotes, every second piece is quoted; with an odd number of quotes the last is unclosed.
  if [[ $text == *\"*\"* ]]; then
    IFS=\" read -r -a words <<<"$text" || true
    text=''
    for ((at = 0; at < ${#words[@]}; at++)); do
      if ((at % 2 == 0)); then text+=${words[at]}; else text+='<str>'; fi
    done
  fi
  read -r -a words <<<"$text" || true
  for word in "${words[@]}"; do
    if [[ $word == *[0-9]* ]]; then
      # Cheap test first: a regular expression costs as much as the rest of the line.
      if [[ $word == *-*-*-*-* && $word =~ $UUID ]]; then
        word=${word/"${BASH_REMATCH[0]}"/<id>}
      elif [[ $word == *.*.*.* && $word =~ $IP ]]; then
        word='<ip>'
      elif [[ ${#word} -ge 8 && $word == *[a-fA-F]* && $word =~ $HEX && ${#BASH_REMATCH[0]} -ge 8 ]]; then
        word=${word/"${BASH_REMATCH[0]}"/<hex>}
      fi
      # An extended pattern needs one step but takes fifty times as long.
      word=${word//[0-9]/0}
      while [[ $word == *00* ]]; do word=${word//00/0}; done
      word=${word//0.0/0}
      word=${word//0/<n>}
    fi
    message+=${message:+ }$word
  done
  # Remove "- " or ": " that remain after time and level.
  message=${message##*([-:|, ])}
  [[ $message ]] || message='(empty)'
}

# ---- output --------------------------------------------------------------------------------------------------

# quote TEXT: sets $quoted to a JSON string. Bytes that are not UTF-8 become U+FFFD, so the output is always valid.
quote() {
  local text=$1 json='' piece byte code need
  local -i at=0 size=${#1}
  while ((at < size)); do
    piece=${text:at}
    piece=${piece%%[!\ !\#-\[\]-~]*}
    json+=$piece
    at+=${#piece}
    ((at < size)) || break
    byte=${text:at:1}
    printf -v code '%d' "'$byte"
    code=$((code & 255)) need=0
    if ((code >= 0xC2 && code <= 0xDF)); then need=2; fi
    if ((code >= 0xE0 && code <= 0xEF)); then need=3; fi
    if ((code >= 0xF0 && code <= 0xF4)); then need=4; fi
    case $byte in
      '"') json+='\"' ;;
      \\) json+=\\\\ ;;
      $'\n') json+='\n' ;;
      $'\t') json+='\t' ;;
      *)
        if ((need > 0)) && sequence "${text:at:need}" "$need"; then
          json+=${text:at:need}
          at+=$((need - 1))
        elif ((code < 0x20 || code == 0x7F)); then
          printf -v byte '\\u%04x' "$code"
          json+=$byte
        else
          json+='\ufffd'
        fi
        ;;
    esac
    at+=1
  done
  quoted="\"$json\""
}

# sequence BYTES LENGTH: whether the bytes are one well-formed UTF-8 sequence.
sequence() {
  local -i i value
  local second
  ((${#1} == $2)) || return 1
  for ((i = 1; i < $2; i++)); do
    printf -v value '%d' "'${1:i:1}"
    (((value & 0xC0) == 0x80)) || return 1
  done
  printf -v value '%d' "'${1:0:1}"
  printf -v second '%d' "'${1:1:1}"
  value=$((value & 255)) second=$((second & 255))
  # Overlong forms, surrogates, beyond U+10FFFF.
  ! ((value == 0xE0 && second < 0xA0 || value == 0xED && second > 0x9F || value == 0xF0 && second < 0x90 || value == 0xF4 && second > 0x8F))
}

# text_or_null TEXT: sets $quoted.
text_or_null() {
  if [[ $1 ]]; then quote "$1"; else quoted=null; fi
}

# ---- triage --------------------------------------------------------------------------------------------------

declare -A given=() levels=([fatal]=0 [error]=0 [warn]=0 [info]=0 [debug]=0 [trace]=0 [other]=0)
declare -A count=() first_line=() group_first=() group_last=() example=() bucket_events=() bucket_problems=()
declare -a lines=()
declare -i events=0 number=0 problems=0
first_seen='' last_seen='' problem=''

triage_line() {
  local line=$1 seen stamp rest level message key bucket
  if [[ $line == [[:space:]]* || $line == 'Caused by'* || $line == Traceback* ]]; then
    [[ ! $problem ]] || printf '%s\n' "$line" >&3
    return 0
  fi
  events+=1 problem=''
  find_time "$line"
  find_level "$rest"
  levels[$level]=$((${levels[$level]} + 1))
  if [[ $seen ]]; then
    : "${first_seen:=$seen}"
    last_seen=$seen
    case $step in
      minute) bucket=$stamp ;;
      hour) bucket=${stamp%:*}:00 ;;
      day) bucket=${stamp%T*} ;;
    esac
    bucket_events[$bucket]=$((${bucket_events[$bucket]:-0} + 1))
  fi
  case $level in fatal | error | warn) ;; *) return 0 ;; esac
  problem=1 problems+=1
  printf '%s\n' "$line" >&3
  if [[ $seen ]]; then bucket_problems[$bucket]=$((${bucket_problems[$bucket]:-0} + 1)); fi
  normalise "$rest"
  key=$level$tab$message
  if [[ ! ${count[$key]:-} ]]; then
    # A log in which every problem is different must not fill the memory.
    ((${#count[@]} < GROUPS_MAX)) || return 0
    count[$key]=0 first_line[$key]=$number group_first[$key]=$seen example[$key]=${line:0:EXAMPLE_BYTES_MAX}
  fi
  count[$key]=$((${count[$key]} + 1))
  [[ ! $seen ]] || group_last[$key]=$seen
}

print_problems() {
  local key line separator=''
  local -A by_line=()
  # Sort by number only, so that no byte of a message reaches `sort`.
  for key in "${!count[@]}"; do by_line[${first_line[$key]}]=$key; done
  local -a order=()
  mapfile -t order < <(
    for line in "${!by_line[@]}"; do printf '%d %d\n' "${count[${by_line[$line]}]}" "$line"; done | sort -k1,1nr -k2,2n
  )
  for line in "${order[@]:0:top}"; do
    key=${by_line[${line#* }]}
    printf '%s\n    {"level": "%s", ' "$separator" "${key%%"$tab"*}"
    quote "${key#*"$tab"}"
    printf '"message": %s, "count": %d, "first_line": %d, ' "$quoted" "${count[$key]}" "${first_line[$key]}"
    text_or_null "${group_first[$key]}"
    printf '"first_seen": %s, ' "$quoted"
    text_or_null "${group_last[$key]:-}"
    printf '"last_seen": %s, ' "$quoted"
    quote "${example[$key]}"
    printf '"example": %s}' "$quoted"
    separator=,
  done
}

print_timeline() {
  local bucket separator=''
  local -a order=()
  ((${#bucket_events[@]} > 0)) || return 0
  mapfile -t order < <(printf '%s\n' "${!bucket_events[@]}" | sort)
  local from=$((${#order[@]} > BUCKETS_MAX ? ${#order[@]} - BUCKETS_MAX : 0))
  for bucket in "${order[@]:from}"; do
    printf '%s\n    {"at": "%s", "events": %d, "problems": %d}' \
      "$separator" "$bucket" "${bucket_events[$bucket]}" "${bucket_problems[$bucket]:-0}"
    separator=,
  done
}

print_output() {
  local name separator=''
  printf '{\n  "lines": %d,\n  "events": %d,\n  "levels": {' "${#lines[@]}" "$events"
  for name in fatal error warn info debug trace other; do
    printf '%s"%s": %d' "$separator" "$name" "${levels[$name]}"
    separator=', '
  done
  text_or_null "$first_seen"
  printf '},\n  "first_seen": %s,\n' "$quoted"
  text_or_null "$last_seen"
  printf '  "last_seen": %s,\n  "top_problems": [' "$quoted"
  print_problems
  printf '\n  ],\n  "timeline": ['
  print_timeline
  printf '\n  ]\n}\n'
}

read_input
top=${given[top]:-5} step=${given[bucket]:-hour}
[[ $top == [1-9] || $top == [1-4][0-9] || $top == 50 ]] || fail "top must be a whole number from 1 to 50"
[[ $step == @(minute|hour|day) ]] || fail "bucket must be minute, hour or day"
if [[ ${given[log]+set} ]]; then
  mapfile -t lines <<<"${given[log]}"
  # The here-string adds a line feed to texts that already end with one.
  [[ ${lines[-1]} ]] || unset 'lines[-1]'
elif [[ ${given[path]:-} ]]; then
  [[ -f ${given[path]} && -r ${given[path]} ]] || fail "path cannot be read; send the file with the run"
  mapfile -t lines <"${given[path]}"
else
  fail "log must be a string, or path must name a file sent with the run"
fi
exec 3>"$SANDBOX_FILES_DIR/problems.log"
for line in "${lines[@]}"; do
  number+=1
  line=${line%$'\r'}
  [[ ! $line ]] || triage_line "$line"
done
exec 3>&-
print_output >"$SANDBOX_OUTPUT"
printf 'read %d lines, found %d problems of %d kinds\n' "${#lines[@]}" "$problems" "${#count[@]}"
