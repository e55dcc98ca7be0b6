-- The load of one run, made as cheaply as Lua can. What to send is in the environment:
-- LIST    a file of whole requests, each behind a line with its length: one is drawn, or
-- HEAD    the request up to a number that is chosen among COUNT from FROM on,
-- SAMPLES or, where the choice is not uniform, read from this file of one a line;
-- MID     what follows it up to the id's number, where there are ids (IDS, their first),
-- TAIL    and the rest. SEED makes the choice.
local getenv, random = os.getenv, math.random
local head, mid, tail = getenv("HEAD"), getenv("MID"), getenv("TAIL")

math.randomseed(tonumber(getenv("SEED")))

local function requests()
  local all, file = {}, assert(io.open(getenv("LIST"), "rb"))
  local length = file:read("*l")
  while length do
    all[#all + 1] = file:read(tonumber(length))
    length = file:read("*l")
  end
  file:close()
  return all
end

-- chooser returns what yields the next number.
local function chooser()
  local from = tonumber(getenv("FROM"))
  if not getenv("SAMPLES") then
    local last = from + tonumber(getenv("COUNT")) - 1
    return function() return random(from, last) end
  end
  local samples, i = {}, 0
  for line in io.lines(getenv("SAMPLES")) do samples[#samples + 1] = line end
  local n = #samples
  return function()
    i = i < n and i + 1 or 1
    return samples[i]
  end
end

if getenv("LIST") then
  local all = requests()
  local n, only = #all, all[1]
  if n == 1 then
    function request() return only end
  else
    function request() return all[random(1, n)] end
  end
elseif getenv("IDS") then
  local choose, id = chooser(), tonumber(getenv("IDS"))
  function request()
    id = id + 1
    return head .. choose() .. mid .. id .. tail
  end
else
  local choose = chooser()
  function request() return head .. choose() .. tail end
end

-- One line for the bench to read: see parseWrk.
function done(summary)
  local e = summary.errors
  io.write(string.format("quotad-bench %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, e.status, e.connect, e.read, e.write, e.timeout))
end
