module github.com/skillbox-rs/skillbox/web/sdk/go

go 1.19
